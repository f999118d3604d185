/** Larger than the caches that belong to one core, and small beside those that programs of other virtual machines share. */
const BYTES = 16 * 1_024 ** 2;
const BYTES_PER_LINE = 64;
const STEPS = 50_000;

/** @type {Int32Array | null} */
let order = null;

/**
 * The time of a read that must go beyond the core's own caches. It is a property of the machine at that moment: where other virtual machines use the shared
 * cache and the memory, it rises tenfold, and with it the cost of programs that touch much memory, those of several processes on one core first.
 *
 * @returns {number} nanoseconds of CPU per read
 */
export function memoryLatencyNs() {
  order ??= cycleOf(BYTES / BYTES_PER_LINE, Math.random);
  const wordsPerLine = BYTES_PER_LINE / order.BYTES_PER_ELEMENT;
  const before = process.cpuUsage();
  let at = Math.floor(Math.random() * (order.length / wordsPerLine)) * wordsPerLine;
  for (let step = 0; step < STEPS; step += 1) at = order[at] ?? -1;
  const { user, system } = process.cpuUsage(before);
  if (at < 0) throw new Error('the reads left their cycle');
  return ((user + system) * 1_000) / STEPS;
}

/**
 * One cycle through all cache lines in random order, which no prefetcher can follow.
 *
 * @param {number} lines
 * @param {() => number} random from 0 up to, and without, 1
 * @returns {Int32Array} at the first word of each line the index of the first word of the next
 */
export function cycleOf(lines, random) {
  const wordsPerLine = BYTES_PER_LINE / Int32Array.BYTES_PER_ELEMENT;
  const next = new Int32Array(lines * wordsPerLine);
  for (let line = 0; line < lines; line += 1) next[line * wordsPerLine] = line * wordsPerLine;
  // Exchanged with an earlier one only, so that there is a single cycle.
  for (let line = lines - 1; line > 0; line -= 1) {
    const other = Math.floor(random() * line) * wordsPerLine;
    const index = line * wordsPerLine;
    [next[index], next[other]] = [next[other] ?? 0, next[index] ?? 0];
  }
  return next;
}
