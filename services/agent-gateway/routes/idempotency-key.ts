import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { ulid } from '#shared/ids.ts';
import { limits } from '../limits.ts';
import { invalidField } from '../plugins/error-reply.ts';

/** The caller's key from the header, null when there is none. @throws `request.invalid` */
export function idempotencyKeyOf(headers: IncomingHttpHeaders): string | null {
  const key = headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key === 'string' && key.length > 0 && key.length <= limits.idempotencyKeyCharacters) return key;
  throw invalidField('/idempotency-key', `must have 1 to ${limits.idempotencyKeyCharacters} characters`);
}

/** A command id: the same for the same session, operation and key; a new one without a key. */
export function commandIdOf(sessionId: string, what: 'post' | 'patch', key: string | null): string {
  return `${sessionId}-${what}-${key === null ? ulid() : createHash('sha256').update(key, 'utf8').digest('hex')}`;
}
