import { randomFillSync } from 'node:crypto';

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
/** Timestamp characters; the rest is random. */
const TIME_LETTERS = 10;
const RANDOM_LETTERS = 16;

/** One system call per id would cost more than all the rest. No byte is used twice. */
const POOL_BYTES = 4_096;
const pool = Buffer.alloc(POOL_BYTES);
let poolUsed = POOL_BYTES;

/** Cached: many ids are made in one millisecond. */
let lastTime = { ms: -1, text: '' };

/** A ULID: 48 bits of milliseconds and 80 random bits, as 26 characters of Crockford's base 32. Sorts by time; valid as a subject token. */
export function ulid(nowMs: number = Date.now()): string {
  if (nowMs !== lastTime.ms) lastTime = { ms: nowMs, text: timeText(nowMs) };
  let id = lastTime.text;
  const from = drawRandom(RANDOM_LETTERS);
  // 32 divides 256, so masking a random byte keeps every character equally likely.
  for (let at = from; at < from + RANDOM_LETTERS; at += 1) id += CROCKFORD[(pool[at] as number) & 31];
  return id;
}

/** Epoch milliseconds, by its maker's clock. */
export function ulidTimeMs(id: string): number {
  let timeMs = 0;
  for (const letter of id.slice(0, TIME_LETTERS)) timeMs = timeMs * CROCKFORD.length + CROCKFORD.indexOf(letter);
  return timeMs;
}

export function traceId(): string {
  return randomHex(16);
}

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

/** Offset of unused bytes in the pool; read them before the next draw. */
function drawRandom(sizeBytes: number): number {
  if (poolUsed + sizeBytes > POOL_BYTES) {
    randomFillSync(pool);
    poolUsed = 0;
  }
  const from = poolUsed;
  poolUsed += sizeBytes;
  return from;
}
