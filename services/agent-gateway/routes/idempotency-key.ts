import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import { ulid } from '#shared/ids.ts';
import { limits } from '../limits.ts';
import { invalidField } from '../plugins/error-reply.ts';

/** As the published description has it. */
export const idempotencyHeader = z.object({ 'idempotency-key': z.string().min(1).max(limits.idempotencyKeyCharacters).optional() });

/** Null: no key. @throws `request.invalid` */
export function idempotencyKeyOf(headers: IncomingHttpHeaders): string | null {
  const key = headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key === 'string' && key.length > 0 && key.length <= limits.idempotencyKeyCharacters) return key;
  throw invalidField('/idempotency-key', `must have 1 to ${limits.idempotencyKeyCharacters} characters`);
}

/** The same for the same session, operation and key; new without a key. */
export function commandIdOf(
  sessionId: string,
  what: 'post' | 'patch' | 'tool' | 'delete' | 'event-webhook' | 'event-patch' | 'events-delete',
  key: string | null,
): string {
  return `${sessionId}-${what}-${key === null ? ulid() : createHash('sha256').update(key, 'utf8').digest('hex')}`;
}
