import { z } from 'zod';
import type { CommandReply } from '#bus/messages/session.ts';
import { type ErrorCode, errorCatalogue } from '#shared/errors/switchyard-error.ts';

/** A command's reply, from bus or database. A code unknown to this version, from a newer owner, counts as `internal`. */
export const commandReply = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), value: z.record(z.string(), z.unknown()) }),
  z.object({
    ok: z.literal(false),
    code: z.string().transform((code): ErrorCode => (isErrorCode(code) ? code : 'internal')),
    message: z.string(),
    sequence: z.number().optional(),
    storedAtMs: z.number().optional(),
  }),
]) satisfies z.ZodType<CommandReply>;

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorCatalogue, code);
}
