import { describe, expect, it } from 'vitest';
import { QueueingDelay, SAMPLE_INTERVAL_MS } from './admission.ts';

/** A queue with a fixed service rate, sampled every half second. */
function queueAt(takenPerSecond: number) {
  const queueingDelay = new QueueingDelay();
  let nowMs = 0;
  let dequeued = 0;
  let waiting = 0;
  const sample = () => queueingDelay.sample({ atMs: nowMs, waiting, dequeued });
  sample();
  return {
    queueingDelay,
    put: (count: number) => {
      waiting += count;
    },
    /** Advances the time with dequeuing and sampling. */
    pass: (ms: number) => {
      for (const untilMs = nowMs + ms; nowMs < untilMs; ) {
        nowMs += SAMPLE_INTERVAL_MS;
        const most = Math.min(waiting, (takenPerSecond * SAMPLE_INTERVAL_MS) / 1_000);
        dequeued += most;
        waiting -= most;
        sample();
      }
    },
    /** Advances the time without sampling. */
    leave: (ms: number) => {
      nowMs += ms;
    },
    admits: () => queueingDelay.admits(nowMs),
    /** Calls admitted before the first refusal. */
    room: () => {
      let count = 0;
      while (count < 100_000 && queueingDelay.admits(nowMs)) count += 1;
      return count;
    },
  };
}

describe('the queueing delay', () => {
  it('refuses what would wait for more than five seconds, and admits again once it would not', () => {
    const queue = queueAt(100);
    queue.put(700);
    queue.pass(1_000);
    expect(queue.admits()).toBe(false);

    queue.pass(2_000);
    expect(queue.admits()).toBe(true);
  });

  it('refuses when nothing is dequeued', () => {
    const queue = queueAt(0);
    queue.put(65);
    queue.pass(1_000);

    expect(queue.admits()).toBe(false);
  });

  it('counts what it admits between two samples', () => {
    const queue = queueAt(100);
    queue.put(500);
    queue.pass(1_000);

    expect(queue.room()).toBe(101); // 400 wait, and 500 are served in five seconds
    queue.pass(500);
    expect(queue.room()).toBeGreaterThan(0);
  });

  it('admits a burst before it could be dequeued', () => {
    const queue = queueAt(1_000);
    queue.pass(5_000);
    queue.put(10_000);
    queue.pass(SAMPLE_INTERVAL_MS);

    expect(queue.admits()).toBe(true);
    queue.pass(SAMPLE_INTERVAL_MS);
    expect(queue.admits()).toBe(false);
  });

  it('admits a few however long they wait', () => {
    const queue = queueAt(0.1);
    queue.put(60);
    queue.pass(20_000);

    expect(queue.admits()).toBe(true);
  });

  it('ignores samples after ten seconds', () => {
    const queue = queueAt(0);
    queue.put(1_000);
    queue.pass(2_000);
    expect(queue.admits()).toBe(false);

    queue.leave(10_000);
    expect(queue.admits()).toBe(true);
  });

  it('restarts with a queue whose counter restarts', () => {
    const { queueingDelay } = queueAt(0);
    queueingDelay.sample({ atMs: 500, waiting: 1_000, dequeued: 50 });
    queueingDelay.sample({ atMs: 1_000, waiting: 1_000, dequeued: 50 });
    expect(queueingDelay.admits(1_000)).toBe(false);

    queueingDelay.sample({ atMs: 1_500, waiting: 1_000, dequeued: 0 });
    expect(queueingDelay.admits(1_500)).toBe(true);
  });

  it('returns when it has to be sampled', () => {
    const queueingDelay = new QueueingDelay();
    expect(queueingDelay.isDue(0)).toBe(true);

    queueingDelay.sample({ atMs: 0, waiting: 0, dequeued: 0 });
    expect([queueingDelay.isDue(SAMPLE_INTERVAL_MS - 1), queueingDelay.isDue(SAMPLE_INTERVAL_MS)]).toEqual([false, true]);
  });
});
