import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { TokenCorrections } from './token-corrections.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('corrections of tokens', () => {
  it('are summed by counter, sent once, and summed anew afterwards', () => {
    const increment = vi.fn(async () => 0);
    const corrections = new TokenCorrections({ increment });
    corrections.add('one', -70);
    corrections.add('one', 20);
    corrections.add('two', 5);
    corrections.add('even', 5);
    corrections.add('even', -5);
    expect(increment).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1_000);
    expect(increment.mock.calls).toEqual([
      ['one', -50, 120_000],
      ['two', 5, 120_000],
    ]);
    corrections.add('one', 1);
    vi.advanceTimersByTime(1_000);
    expect(increment.mock.calls.slice(2)).toEqual([['one', 1, 120_000]]);
  });

  it('are sent at once by a flush, and by nothing behind it', () => {
    const increment = vi.fn(async () => {
      throw new Error('away');
    });
    const corrections = new TokenCorrections({ increment });
    corrections.add('one', 1);
    corrections.flush();
    corrections.flush();
    vi.advanceTimersByTime(1_000);
    expect(increment.mock.calls).toEqual([['one', 1, 120_000]]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('of calls whose mark is answered during a stop are sent before it ends', async () => {
    const answers: ((count: number) => void)[] = [];
    const increment = vi.fn((counter: string) => (counter.startsWith('rate:') ? new Promise<number>((resolve) => answers.push(resolve)) : Promise.resolve(0)));
    const corrections = new TokenCorrections({ increment });
    corrections.addOnce('gen-1', 'tokens', -70);
    const stopped = corrections.stop();
    for (const answer of answers) answer(1);
    await stopped;
    expect(increment.mock.calls.slice(1)).toEqual([['tokens', -70, 120_000]]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('of one call are made once, by whichever process asks first, and not while the cache is away', async () => {
    const counts = new Map<string, number>();
    let isAway = true;
    const increment = vi.fn(async (counter: string, by: number) => {
      if (isAway) throw new Error('away');
      counts.set(counter, (counts.get(counter) ?? 0) + by);
      return counts.get(counter) ?? 0;
    });
    const processes = [new TokenCorrections({ increment }), new TokenCorrections({ increment })];
    const correct = async () => {
      for (const corrections of processes) corrections.addOnce('gen-1', 'tokens', -70);
      await vi.advanceTimersByTimeAsync(1_000);
    };
    await correct();
    expect(counts.get('tokens')).toBeUndefined();
    isAway = false;
    await correct();
    await correct();
    expect(counts.get('tokens')).toBe(-70);
  });
});
