import { createHash } from 'node:crypto';
import { guestIdOf } from '#shared/contracts/agent/customer.ts';
import { ulid } from '#shared/ids.ts';

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Of a new session, and of its guest. The same for the same idempotency key, so that a repeat is the same command. */
export function newSessionIds(agentId: string, key: string | null): { sessionId: string; guestId: string } {
  const unique = key === null ? ulid() : idOf(`${agentId}\nPOST /sessions\n${key}`);
  const sessionId = `ses_${unique}`;
  return { sessionId, guestId: guestIdOf(sessionId) };
}

/** As long as a ULID, of its alphabet; 130 bits. */
function idOf(text: string): string {
  const bytes = createHash('sha256').update(text, 'utf8').digest().subarray(0, 26);
  return [...bytes].map((byte) => ALPHABET[byte % 32]).join('');
}
