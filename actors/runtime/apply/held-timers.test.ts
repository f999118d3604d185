import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { CommandLog, ReadOptions, StoredCommand } from '#bus/bus.ts';
import { type Entry, Mailbox } from './mailbox.ts';

const CURSOR = 10;
const LOG_END = 99;
/** Simulated timers put what `setImmediate` has behind them a millisecond later. */
const BEHIND_SOCKETS_MS = 1;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A mailbox of an acquired partition. @param lastOf its look-ups of the partition's last command */
function acquired({ lastOf = async () => 12, logEnd = LOG_END }: { lastOf?: () => Promise<number>; logEnd?: number } = {}) {
  const mailbox = new Mailbox({ partition: 7, epoch: 1, owner: 'host-1', commitNo: 1, cursor: CURSOR, cursorFingerprint: null }, () => {});
  const asked = vi.fn(lastOf);
  let handler: (commands: StoredCommand[]) => Promise<void> = async () => {};
  let options: ReadOptions = {};
  const log = {
    lastOf: asked,
    read: (_partition, _after, handle, given = {}) => {
      [handler, options] = [handle, given];
      return { stop: async () => {} };
    },
  } as Pick<CommandLog, 'lastOf' | 'read'> as CommandLog;
  const fire = (key: string) => mailbox.fire({ partition: 7, key, command: '{}' });
  const deliver = (...sequences: number[]) => handler(sequences.map((sequence) => ({ sequence, messageId: `${sequence}`, body: '{}', storedAtMs: 1 })));
  const settled = () => vi.advanceTimersByTimeAsync(0);
  return { mailbox, asked, fire, deliver, settled, follow: () => mailbox.follow(log, logEnd), restart: () => options.onRestart?.() };
}

const namesOf = (entries: readonly Entry[]) =>
  entries.map((entry) => (entry.kind === 'command' ? entry.stored.sequence : entry.kind === 'timer' ? entry.key : entry.kind));

describe('a timer that is due when its partition is acquired', () => {
  it('DESIGN 4: is applied behind the commands that stood in the log, and those that come due meanwhile behind it', async () => {
    const { mailbox, asked, fire, follow, deliver, settled } = acquired();
    fire('a');
    follow();
    fire('b');
    await settled();
    expect(mailbox.waiting).toBe(0);
    await deliver(11);
    fire('c');
    await deliver(12, 14);

    expect(namesOf(mailbox.dequeue(10))).toEqual([11, 12, 14, 'a', 'b', 'c']);
    fire('d');
    expect(namesOf(mailbox.dequeue(10))).toEqual(['d']);
    expect(asked).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([
    { what: 'no command', last: 0 },
    { what: 'none that is not applied', last: CURSOR },
  ])('waits for nothing when the log has $what of the partition', async ({ last }) => {
    const { mailbox, fire, follow, settled } = acquired({ lastOf: async () => last });
    fire('a');
    follow();
    await settled();

    expect(namesOf(mailbox.dequeue(10))).toEqual(['a']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('DESIGN 4: waits ten seconds for a reader that delivers nothing, and no longer', async () => {
    const { mailbox, fire, follow, deliver } = acquired();
    fire('a');
    follow();
    await vi.advanceTimersByTimeAsync(9_000);
    await deliver(11);
    await vi.advanceTimersByTimeAsync(9_999);
    expect(namesOf(mailbox.dequeue(10))).toEqual([11]);
    await vi.advanceTimersByTimeAsync(1 + BEHIND_SOCKETS_MS);

    expect(namesOf(mailbox.dequeue(10))).toEqual(['a']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('reads what arrived during a pause of its process first', async () => {
    const { mailbox, fire, follow, deliver, settled } = acquired();
    fire('a');
    follow();
    await settled();
    // Both parts have passed; the sockets are read before what `setImmediate` has put behind them.
    vi.advanceTimersToNextTimer();
    vi.advanceTimersToNextTimer();
    await deliver(11, 12);
    await vi.advanceTimersByTimeAsync(BEHIND_SOCKETS_MS);

    expect(namesOf(mailbox.dequeue(10))).toEqual([11, 12, 'a']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('waits no longer for a broker that answers no look-up, and asks until then', async () => {
    let isAway = true;
    const lastOf = async () => (isAway ? Promise.reject(new Error('away')) : 12);
    const gone = acquired({ lastOf });
    gone.fire('a');
    gone.follow();
    await vi.advanceTimersByTimeAsync(10_000 + BEHIND_SOCKETS_MS);
    expect(namesOf(gone.mailbox.dequeue(10))).toEqual(['a']);

    const back = acquired({ lastOf });
    back.fire('a');
    back.follow();
    await vi.advanceTimersByTimeAsync(5_000);
    isAway = false;
    await back.deliver(11);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(namesOf(back.mailbox.dequeue(10))).toEqual([11]);
    await back.deliver(12);
    expect(namesOf(back.mailbox.dequeue(10))).toEqual([12, 'a']);
  });

  it.each([
    { when: 'due at the acquisition', isLate: false },
    { when: 'due a minute later', isLate: true },
  ])('goes on waiting while the reader waits for capacity, as without the database ($when)', async ({ isLate }) => {
    const { mailbox, fire, follow, deliver } = acquired({ lastOf: async () => 2_000, logEnd: 3_000 });
    if (!isLate) fire('a');
    follow();
    const delivering = deliver(...Array.from({ length: 600 }, (_, n) => CURSOR + 1 + n));
    await vi.advanceTimersByTimeAsync(60_000);
    if (isLate) fire('a');
    await vi.advanceTimersByTimeAsync(60_000);
    expect(mailbox.waiting).toBe(600);
    mailbox.dequeue(600);
    await delivering;
    await deliver(2_000);

    expect(namesOf(mailbox.dequeue(10))).toEqual([2_000, 'a']);
  });

  it('waits for the commands of the log that is read when it is another one', async () => {
    let last = 0;
    const { mailbox, fire, follow, restart, deliver, settled } = acquired({ lastOf: async () => last });
    last = 80;
    fire('a');
    follow();
    await settled();
    last = 3;
    restart();
    await settled();
    await deliver(1, 2);
    expect(namesOf(mailbox.dequeue(10))).toEqual(['restart', 1, 2]);
    await deliver(3);

    expect(namesOf(mailbox.dequeue(10))).toEqual([3, 'a']);
  });

  it('is not applied when a command before it has disarmed it or armed it anew', async () => {
    const { mailbox, fire, follow, deliver, settled } = acquired();
    fire('a');
    fire('b');
    follow();
    await settled();
    await deliver(11);
    mailbox.disarm('a');
    await deliver(12);

    expect(namesOf(mailbox.dequeue(10))).toEqual([11, 12, 'b']);
  });

  it('is not applied when a command before it disarms it after its release', async () => {
    const { mailbox, fire, follow, deliver, settled } = acquired();
    fire('a');
    fire('b');
    follow();
    await settled();
    await deliver(11, 12);
    expect(namesOf(mailbox.dequeue(1))).toEqual([11]);
    mailbox.disarm('a');

    expect(namesOf(mailbox.dequeue(10))).toEqual([12, 'b']);
    mailbox.disarm('b');
    expect(mailbox.waiting).toBe(0);
  });

  it('waits no longer for look-ups that fail once all that the whole log had is delivered', async () => {
    const { mailbox, fire, follow, deliver } = acquired({ lastOf: async () => Promise.reject(new Error('away')), logEnd: 12 });
    fire('a');
    follow();
    await vi.advanceTimersByTimeAsync(5_000);
    await deliver(11);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(namesOf(mailbox.dequeue(10))).toEqual([11]);
    await deliver(12);

    expect(namesOf(mailbox.dequeue(10))).toEqual([12, 'a']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is not released by the look-up of a log that is no more', async () => {
    const answers: ((sequence: number) => void)[] = [];
    const { mailbox, fire, follow, restart, deliver, settled } = acquired({ lastOf: () => new Promise((resolve) => answers.push(resolve)) });
    fire('a');
    follow();
    restart();
    answers[1]?.(3);
    await settled();
    answers[0]?.(1);
    await settled();
    await deliver(1, 2);
    expect(namesOf(mailbox.dequeue(10))).toEqual(['restart', 1, 2]);
    await deliver(3);

    expect(namesOf(mailbox.dequeue(10))).toEqual([3, 'a']);
  });

  it.each(['discard', 'stopReading'] as const)('is dropped when its partition is released (%s)', async (how) => {
    const { mailbox, fire, follow, settled } = acquired();
    fire('a');
    follow();
    await settled();
    await mailbox[how]();
    await vi.advanceTimersByTimeAsync(60_000);

    expect(mailbox.waiting).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a timer that comes due later', () => {
  it('waits for the commands that stood in the log if they are not delivered yet', async () => {
    const { mailbox, fire, follow, deliver, settled } = acquired();
    follow();
    await deliver(11);
    fire('a');
    await settled();
    await deliver(12);

    expect(namesOf(mailbox.dequeue(10))).toEqual([11, 12, 'a']);
  });

  it.each([
    { what: 'all that was in the log was applied before', logEnd: CURSOR },
    { what: 'all that was in the log is delivered', logEnd: 12 },
  ])('is applied at once, without a look-up, when $what', async ({ logEnd }) => {
    const { mailbox, asked, fire, follow, deliver } = acquired({ logEnd });
    follow();
    if (logEnd > CURSOR) await deliver(12);
    mailbox.dequeue(10);
    fire('a');

    expect(namesOf(mailbox.dequeue(10))).toEqual(['a']);
    expect(asked).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is looked up for, however long the reader has had nothing to deliver: a pause of this process looks the same', async () => {
    const { mailbox, fire, follow, deliver, settled } = acquired();
    follow();
    await deliver(11);
    await vi.advanceTimersByTimeAsync(10_000);
    fire('a');
    await settled();
    expect(namesOf(mailbox.dequeue(10))).toEqual([11]);
    await deliver(12);

    expect(namesOf(mailbox.dequeue(10))).toEqual([12, 'a']);
    expect(vi.getTimerCount()).toBe(0);
  });
});
