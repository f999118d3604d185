import { Session } from 'node:inspector/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Growth of the old generation between collections. V8's default is up to four times as much. */
const GROWTH_PERCENT = 20;
/** The same while long texts pass. */
const GROWTH_WITH_LONG_TEXTS_PERCENT = 100;
/** In bytes or characters. Shorter texts are a small part of what a request allocates. */
const LONG_TEXT_SIZE = 32 * 1024;
/** So long after the last long text the usual growth holds again. */
const WITHOUT_LONG_TEXTS_MS = 10_000;

/**
 * Of long texts, after which the young generation is collected. What they leave behind are buffers, some five times their size, that hardly fill it: V8 would
 * begin a full collection before the next one of the young generation, which frees them.
 */
const LONG_TEXTS_PER_COLLECTION = 4 * 1024 * 1024;

let isSetUp = false;
let longTexts = 0;
/** Null: not looked for yet. */
let collectYoung: (() => void) | null = null;
let lastLongTextAtMs = 0;
/** Runs while the growth is that of long texts. */
let watch: NodeJS.Timeout | null = null;

/**
 * Sets V8's heap flags for a server. Call it first, before any code is optimised.
 *
 * No pretenuring: a thousand streams would teach V8 to allocate their objects in the old generation. Short requests afterwards would fill it with
 * garbage by tens of MB a second, and collection would take a fifth of the time instead of a twentieth (ADR 17).
 *
 * The old generation is collected early, since it holds mostly finished calls (ADR 22).
 */
export function setUpHeap(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
  setGrowth(GROWTH_PERCENT);
  isSetUp = true;
}

/**
 * Collects all garbage and shrinks the young generation to its first size. A start grows it to 20 MB and more, which V8 returns only at a later collection
 * that finds the process idle (ADRs 156 and 161). It blocks for some 0.1 s: call it before the process is ready.
 */
export async function collectAfterStart(): Promise<void> {
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.collectGarbage').finally(() => session.disconnect());
}

/**
 * Call it for each body that is read. V8 counts what buffers hold towards the growth of the old generation, though most are freed with the young one: with
 * the usual growth a few prompts of 100 KB cost a full collection, which took up to half of their CPU (ADR 131). In a process without `setUpHeap` it does
 * nothing.
 */
export function noteText(size: number): void {
  if (size < LONG_TEXT_SIZE || !isSetUp) return;
  lastLongTextAtMs = performance.now();
  longTexts += size;
  if (longTexts >= LONG_TEXTS_PER_COLLECTION) {
    longTexts = 0;
    collectYoung ??= youngCollector();
    setImmediate(collectYoung);
  }
  if (watch !== null) return;
  setGrowth(GROWTH_WITH_LONG_TEXTS_PERCENT);
  watch = setInterval(resetOnceQuiet, WITHOUT_LONG_TEXTS_MS).unref();
}

function youngCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect: ((options: { type: 'minor' }) => void) | undefined = runInNewContext('globalThis.gc');
  setFlagsFromString('--no-expose-gc');
  // A runtime whose flags can't change any more has none.
  return () => collect?.({ type: 'minor' });
}

function resetOnceQuiet(): void {
  if (watch === null || performance.now() - lastLongTextAtMs < WITHOUT_LONG_TEXTS_MS) return;
  clearInterval(watch);
  watch = null;
  setGrowth(GROWTH_PERCENT);
}

function setGrowth(percent: number): void {
  setFlagsFromString(`--heap-growing-percent=${percent}`);
}
