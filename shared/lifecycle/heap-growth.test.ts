import { afterEach, beforeEach, expect, it, vi } from 'vitest';

const flags: string[] = [];
vi.mock('node:v8', () => ({ setFlagsFromString: (flag: string) => void flags.push(flag) }));
const collected: unknown[] = [];
vi.mock('node:vm', () => ({ runInNewContext: (name: string) => (options: object) => void collected.push([name, flags.at(-1), options]) }));

const { noteText, setUpHeap } = await import('./heap.ts');

const LONG = 100_000;
const growths = () => flags.filter((flag) => flag.startsWith('--heap-growing-percent'));

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.runOnlyPendingTimers();
  vi.useRealTimers();
  flags.length = 0;
});

it('a process that has not set its heap up keeps V8’s flags, however long its texts are', () => {
  noteText(LONG);

  expect(flags).toEqual([]);
});

it('the old generation may double while long texts pass, and grows by a fifth again ten seconds after the last', () => {
  setUpHeap();
  noteText(1_000);
  expect(growths()).toEqual(['--heap-growing-percent=20']);

  noteText(LONG);
  noteText(LONG);
  expect(growths().slice(1)).toEqual(['--heap-growing-percent=100']);

  vi.advanceTimersByTime(9_000);
  noteText(LONG);
  vi.advanceTimersByTime(9_000);
  expect(growths()).toHaveLength(2);

  vi.advanceTimersByTime(11_000);
  expect(growths().slice(2)).toEqual(['--heap-growing-percent=20']);
  expect(vi.getTimerCount()).toBe(0);

  noteText(LONG);
  expect(growths().slice(3)).toEqual(['--heap-growing-percent=100']);
  vi.advanceTimersByTime(30_000);
});

it('the young generation is collected after each 4 MiB of long texts, and not by the code that reads them', () => {
  setUpHeap();
  const MIB = 1024 * 1024;
  const collections = () => {
    vi.advanceTimersByTime(0);
    return collected.length;
  };
  for (let text = 0; text < 1_000; text += 1) noteText(30_000);
  noteText(3 * MIB);
  expect(collections()).toBe(0);
  noteText(MIB);
  expect(collected).toHaveLength(0);
  expect(collections()).toBe(1);
  noteText(3 * MIB);
  expect(collections()).toBe(1);
  noteText(8 * MIB);
  expect(collections()).toBe(2);
  expect(collected[0]).toEqual(['globalThis.gc', '--no-expose-gc', { type: 'minor' }]);
});
