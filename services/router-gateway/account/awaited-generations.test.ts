import { describe, expect, it } from 'vitest';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { AwaitedGenerations } from './awaited-generations.ts';
import type { GenerationRow } from './generation-rows.ts';

const limits = { generationWaitMs: 60_000, generationPollMs: 1, generationWaiters: 3, retryAfterMs: 1_000 };
const never = new AbortController().signal;

/** A ledger whose rows are written by the test. */
function ledger(more: Partial<typeof limits> = {}) {
  const rows = new Map<string, GenerationRow>();
  const reads: string[][] = [];
  let failure: Error | null = null;
  let inFlight = 0;
  let most = 0;
  const generations = new AwaitedGenerations({
    limits: { ...limits, ...more },
    read: async (ids) => {
      inFlight += 1;
      most = Math.max(most, inFlight);
      reads.push([...ids]);
      const found = ids.flatMap((id) => rows.get(id) ?? []);
      await new Promise(setImmediate);
      inFlight -= 1;
      if (failure !== null) throw failure;
      return found;
    },
  });
  return {
    generations,
    reads,
    /** Since the last call. */
    mostAtOnce: () => {
      const found = most;
      most = inFlight;
      return found;
    },
    write: (generationId: string) => void rows.set(generationId, { generationId, keyId: 'one', record: {} }),
    fail: (error: Error | null) => {
      failure = error;
    },
  };
}

describe('a row of the ledger', () => {
  it('that is there is found by one query, without a wait', async () => {
    const { generations, reads, write } = ledger();
    write('a');

    expect(await generations.find('a', never)).toMatchObject({ generationId: 'a' });
    expect(reads).toEqual([['a']]);
  });

  it('that is written while it is waited for is found', async () => {
    const { generations, reads, write } = ledger();
    const [first, second] = [generations.find('a', never), generations.find('b', never)];
    await expect.poll(() => reads.length, { interval: 1 }).toBeGreaterThan(3);

    write('b');
    expect(await second).toMatchObject({ generationId: 'b' });
    write('a');
    expect(await first).toMatchObject({ generationId: 'a' });
    expect(generations.waiting).toBe(0);
  });

  it('that is not written in time is given up', async () => {
    const { generations } = ledger({ generationWaitMs: 10 });

    expect(await generations.find('a', never)).toBeNull();
    expect(generations.waiting).toBe(0);
  });

  it('is waited for again after all that waited have ended', async () => {
    const { generations, write } = ledger({ generationWaitMs: 5 });
    await generations.find('a', never);
    const found = generations.find('b', never);
    write('b');

    expect(await found).toMatchObject({ generationId: 'b' });
  });
});

describe('those that wait', () => {
  it('cost one query at a time together', async () => {
    const { generations, reads, mostAtOnce, write } = ledger();
    const found = ['a', 'b', 'a'].map((id) => generations.find(id, never));
    await expect.poll(() => generations.waiting, { interval: 1 }).toBe(3);
    reads.length = 0;
    mostAtOnce();
    await expect.poll(() => reads.length, { interval: 1 }).toBeGreaterThan(20);
    const together = reads.slice(1, 20);
    write('a');
    write('b');
    await Promise.all(found);

    expect(new Set(together.map(String))).toEqual(new Set(['a,b']));
    expect(mostAtOnce()).toBe(1);
  });

  it('are so many at most; beyond it a row that is there is still found', async () => {
    const { generations, write } = ledger();
    const found = ['a', 'b', 'c'].map((id) => generations.find(id, never));
    await expect.poll(() => generations.waiting, { interval: 1 }).toBe(3);

    await expect(generations.find('d', never)).rejects.toMatchObject({ code: 'service.overloaded', details: { retryAfterMs: 1_000 } });
    for (const id of ['a', 'b', 'c', 'd']) write(id);
    expect(await generations.find('d', never)).toMatchObject({ generationId: 'd' });
    await Promise.all(found);
  });

  it('get the error of the database, all of them, and later ones wait again', async () => {
    const { generations, fail, write } = ledger();
    const found = ['a', 'b'].map((id) => generations.find(id, never));
    await expect.poll(() => generations.waiting, { interval: 1 }).toBe(2);
    fail(new SwitchyardError('service.not_ready', 'away'));

    for (const one of found) await expect(one).rejects.toMatchObject({ code: 'service.not_ready' });
    fail(null);
    const later = generations.find('c', never);
    write('c');
    expect(await later).toMatchObject({ generationId: 'c' });
  });

  it('end at once when their client leaves', async () => {
    const { generations } = ledger();
    const client = new AbortController();
    const found = generations.find('a', client.signal);
    await expect.poll(() => generations.waiting, { interval: 1 }).toBe(1);

    client.abort();

    expect(await found).toBeNull();
    expect(generations.waiting).toBe(0);
  });
});
