import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { ulid } from '#shared/ids.ts';
import { limits } from '../limits.ts';
import { invalidField } from '../plugins/error-reply.ts';

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
