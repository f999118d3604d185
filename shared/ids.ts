import { randomBytes } from 'node:crypto';

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
/** Letters that are the time; the rest is random. */
const TIME_LETTERS = 10;

/**
 * A ULID: 48 bits of milliseconds and 80 random bits as 26 characters of Crockford's base 32. It sorts by time, and holds
 * none of the characters that separate tokens of a subject.
 */
export function ulid(nowMs: number = Date.now()): string {
  let time = '';
  let rest = nowMs;
  for (let place = 0; place < TIME_LETTERS; place += 1) {
    time = CROCKFORD[rest % 32] + time;
    rest = Math.floor(rest / 32);
  }
  // 32 divides 256, so masking a random byte keeps every character equally likely.
  let random = '';
  for (const byte of randomBytes(16)) random += CROCKFORD[byte & 31];
  return time + random;
}

/** When a ULID was made, epoch milliseconds by the clock of who made it. */
export function ulidTimeMs(id: string): number {
  let timeMs = 0;
  for (const letter of id.slice(0, TIME_LETTERS)) timeMs = timeMs * CROCKFORD.length + CROCKFORD.indexOf(letter);
  return timeMs;
}

/** A 32-hex W3C trace id. */
export function traceId(): string {
  return randomBytes(16).toString('hex');
}
