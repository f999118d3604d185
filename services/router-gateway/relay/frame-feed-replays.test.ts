import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { attemptOf } from '#bus/messages/attempt-number.ts';
import { sseFrame } from '#bus/messages/frame.ts';
import type { Heartbeat } from '#bus/messages/heartbeat.ts';
import { systemClock } from '#shared/clock.ts';
import { Deadlines } from '#shared/deadlines.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { gatewayLimits } from '../limits.ts';
import { CallReaders } from './call-readers.ts';
import { type FedCall, FrameFeed } from './frame-feed.ts';

const { silenceMs, resumableMs } = gatewayLimits;
const OPEN = sseFrame('o', { callId: 'call', attempt: 1, seq: 1 }, 'data: 1\n\n');
const CONTENT = sseFrame('m', { callId: 'call', attempt: 1, seq: 1 }, 'data: 1\n\n');

let database: Database;
let bus: Bus;

beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
});
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});
afterAll(async () => {
  await bus.close();
  await database.close();
});

/** A feed of one call without live frames beyond the retained ones. */
function feed(replayed: readonly Uint8Array[], { takesMs = 0, ...about }: Partial<FedCall> & { takesMs?: number } = {}) {
  const looks: string[] = [];
  const taken: string[] = [];
  let live = (_frame: Uint8Array) => {};
  let reconnected = () => {};
  const quiet: Bus = {
    ...bus,
    onReconnect: (handler) => {
      reconnected = handler;
      return { stop: async () => {} };
    },
    tokens: {
      publish: () => {},
      subscribe: (_, handler) => {
        live = (frame) => handler('tok.gquiet.call', frame);
        return { stop: async () => {}, ready: async () => {} };
      },
      replay: async (_, upTo = 'kept') => {
        looks.push(upTo);
        const read = [...replayed];
        if (takesMs > 0) await new Promise((resolve) => setTimeout(resolve, takesMs));
        return read;
      },
    },
  };
  const readers = new CallReaders({ bus: quiet, origin: 'gquiet', log: silentLog, limits: gatewayLimits });
  const failures: string[] = [];
  const call: FedCall = { callId: 'call', deadlineAtMs: systemClock.nowMs() + 600_000, isDetached: false, ...about };
  const feeding = new FrameFeed(
    { bus: quiet, readers, clock: systemClock, deadlines: new Deadlines(), log: silentLog, limits: gatewayLimits, metrics: noMetrics },
    call,
    {
      onContent: () => taken.push('content'),
      onFrame: (frame) => taken.push(frame.kind),
      restart: () => {},
      onNothingLeft: () => {},
      fail: ({ message }) => failures.push(message),
    },
  );
  const close = async () => {
    feeding.leave('left');
    await readers.stop();
  };
  return { looks, taken, failures, live: (frame: Uint8Array) => live(frame), reconnected: () => reconnected(), close };
}

describe('silence of a worker', () => {
  it('ends a call whose content was streamed, when the retained frames do not go on', async () => {
    const { looks, failures, reconnected, close } = feed([CONTENT]);
    reconnected();
    await vi.advanceTimersByTimeAsync(resumableMs + silenceMs - 1);
    expect(looks).toEqual(['kept']);
    expect(failures).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);

    expect(looks).toEqual(['kept', 'kept']);
    expect(failures).toEqual(['The worker of this call has stopped sending frames and heartbeats']);
    await close();
  });

  it.each([
    ['silence behind content ends a call', 'm', ['The worker of this call has stopped sending frames and heartbeats']],
    ['silence before content ends no call', 'o', []],
  ] as const)('DESIGN 7: %s while another worker has the call and is alive', async (_, kind, expected) => {
    const [own, other] = [attemptOf(1, 7), attemptOf(1, 8)];
    const begun = sseFrame(kind, { callId: 'call', attempt: own, seq: 1 }, 'data: 1\n\n');
    const { failures, live, close } = feed([begun]);
    const beats = async (attempt: number) => {
      const body: Heartbeat = { v: 1, workerId: 'w1', question: 1, calls: ['elsewhere', 'call'], attempts: [1, attempt] };
      bus.notices.publish('hb.gquiet', JSON.stringify(body));
      await vi.advanceTimersByTimeAsync(silenceMs - 1);
    };
    live(begun);
    for (const attempt of [own, own]) await beats(attempt);
    expect(failures).toEqual([]);
    for (const attempt of [other, other]) await beats(attempt);

    expect(failures).toEqual(expected);
    await close();
  });

  it('begins anew when the bus was away, which caused the silence', async () => {
    const { failures, reconnected, close } = feed([CONTENT]);
    reconnected();
    await vi.advanceTimersByTimeAsync(resumableMs + silenceMs - 1);
    reconnected();
    await vi.advanceTimersByTimeAsync(silenceMs - 1);
    expect(failures).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);

    expect(failures).toHaveLength(1);
    await close();
  });

  it('ends a resumed call without content at the second replay, since this gateway does not send it again', async () => {
    const { looks, failures, close } = feed([OPEN], { resumed: { origin: 'gother', after: null } });
    await vi.advanceTimersByTimeAsync(silenceMs);
    expect(looks).toEqual(['kept', 'kept', 'kept']);
    expect(failures).toEqual([]);
    await vi.advanceTimersByTimeAsync(2 * silenceMs);

    expect(failures).toEqual(['The worker of this call has stopped sending frames and heartbeats']);
    await close();
  });
});

describe('a call past its deadline', () => {
  it.each([
    ['is sent to another worker when content was shown, which bills it', CONTENT, ['settle', 'release']],
    ['is over when no content was shown', OPEN, ['release']],
  ])('%s', async (_, frame, steps) => {
    const done: string[] = [];
    const note = (step: string) => () => void done.push(step);
    const outgoing = { send: async () => {}, resend: () => true, settle: note('settle'), release: note('release') };
    const { live, failures, close } = feed([], { deadlineAtMs: systemClock.nowMs(), outgoing });
    live(frame);
    await vi.advanceTimersByTimeAsync(gatewayLimits.deadlineGraceMs);

    expect({ done, failures }).toEqual({ done: steps, failures: ['The request exceeded its time limit'] });
    await close();
  });
});

describe('the replay', () => {
  it('finds frames that are retained shortly after a reader resumed, without another frame of the worker', async () => {
    const replayed = [OPEN];
    const { taken, close } = feed(replayed, { resumed: { origin: 'gother', after: null } });
    await vi.advanceTimersByTimeAsync(resumableMs / 2);
    replayed.push(sseFrame('m', { callId: 'call', attempt: 1, seq: 2 }, 'data: 2\n\n'));
    expect(taken).toEqual(['open']);
    await vi.advanceTimersByTimeAsync(resumableMs / 2);

    expect(taken).toEqual(['open', 'content']);
    await close();
  });

  it('is repeated when one was in flight at its time', async () => {
    const slow = feed([OPEN], { resumed: { origin: 'gother', after: null }, takesMs: resumableMs + 500 });
    await vi.advanceTimersByTimeAsync(resumableMs + 500);
    expect(slow.looks).toEqual(['kept']);
    await vi.advanceTimersByTimeAsync(resumableMs);

    expect(slow.looks).toEqual(['kept', 'kept']);
    await slow.close();
  });

  it('is made a while after the bus was away, and live frames of the meantime are streamed at once', async () => {
    const replayed = [CONTENT];
    const { looks, taken, live, reconnected, close } = feed(replayed);
    live(CONTENT);
    reconnected();
    live(sseFrame('m', { callId: 'call', attempt: 1, seq: 2 }, 'data: 2\n\n'));
    expect(taken).toEqual(['content', 'content']);
    replayed.push(sseFrame('m', { callId: 'call', attempt: 1, seq: 2 }, 'data: 2\n\n'), sseFrame('d', { callId: 'call', attempt: 1, seq: 3 }, 'data: 3\n\n'));
    expect(looks).toEqual([]);
    await vi.advanceTimersByTimeAsync(resumableMs);

    expect(taken).toEqual(['content', 'content', 'done']);
    await close();
  });
});
