import { randomFillSync } from 'node:crypto';

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
/** Letters that are the time; the rest is random. */
const TIME_LETTERS = 10;
const RANDOM_LETTERS = 16;

/** Random bytes are taken from the system in portions of so many: asking for each id costs more than all the rest of it. No byte is used twice. */
const POOL_BYTES = 4_096;
const pool = Buffer.alloc(POOL_BYTES);
let poolUsed = POOL_BYTES;

/** The time of the last ULID as text: many are made in one millisecond. */
let lastTime = { ms: -1, text: '' };

/**
 * A ULID: 48 bits of milliseconds and 80 random bits as 26 characters of Crockford's base 32. It sorts by time, and holds
 * none of the characters that separate tokens of a subject.
 */
export function ulid(nowMs: number = Date.now()): string {
  if (nowMs !== lastTime.ms) lastTime = { ms: nowMs, text: timeText(nowMs) };
  let id = lastTime.text;
  const from = drawRandom(RANDOM_LETTERS);
  // 32 divides 256, so masking a random byte keeps every character equally likely.
  for (let at = from; at < from + RANDOM_LETTERS; at += 1) id += CROCKFORD[(pool[at] as number) & 31];
  return id;
}

/** When a ULID was made, epoch milliseconds by the clock of who made it. */
export function ulidTimeMs(id: string): number {
  let timeMs = 0;
  for (const letter of id.slice(0, TIME_LETTERS)) timeMs = timeMs * CROCKFORD.length + CROCKFORD.indexOf(letter);
  return timeMs;
}

/** A 32-hex W3C trace id. */
export function traceId(): string {
  return randomHex(16);
}

/** So many random bytes, for an id: two letters each. */
export function randomHex(sizeBytes: number): string {
  const from = drawRandom(sizeBytes);
  return pool.toString('hex', from, from + sizeBytes);
}

function timeText(nowMs: number): string {
  let text = '';
  let rest = nowMs;
  for (let index = 0; index < TIME_LETTERS; index += 1) {
    text = CROCKFORD[rest % 32] + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

/** Where in the pool so many fresh bytes stand. To be read before anything else is drawn. */
function drawRandom(sizeBytes: number): number {
  if (poolUsed + sizeBytes > POOL_BYTES) {
    randomFillSync(pool);
    poolUsed = 0;
  }
  const from = poolUsed;
  poolUsed += sizeBytes;
  return from;
}
