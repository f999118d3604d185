import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { attemptOf } from '#bus/messages/attempt-number.ts';
import { sseFrame, templateFrame, textFrame } from '#bus/messages/frame.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import { Deadlines } from '#shared/deadlines.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { type GatewayLimits, gatewayLimits } from '../limits.ts';
import { faultyBus } from '../test-support/harness.ts';
import { CallReaders } from './call-readers.ts';
import { FrameFeed } from './frame-feed.ts';

let database: Database;
let bus: Bus;

beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
});

afterAll(async () => {
  await bus.close();
  await database.close();
});

/** After this silence a lost last frame or a dead worker is assumed; longer than delays of a busy machine. */
const limits = { ...gatewayLimits, silenceMs: 150, silenceMaxMs: 150 };
const template = { prefix: 'data: {"text":', suffix: '}\n\n' };
const chunk = (text: string) => `${template.prefix}${JSON.stringify(text)}${template.suffix}`;
/** The number of a ready frame, or of a text. */
const MARK = /(?:^[^t].*?id: [\w-]+\.|^t)(\d+\.\d+)\n/s;
const markOf = (frame: Uint8Array) => MARK.exec(Buffer.from(frame).toString())?.[1] ?? '';

/**
 * The fate of one frame of the call's worker: it may be whole or a text, its live copy may be lost, it may be repeated, and another worker
 * may still publish.
 */
const fate = fc.record({
  text: fc.option(fc.string({ unit: 'binary', maxLength: 8 }), { nil: null }),
  lost: fc.boolean(),
  repeated: fc.boolean(),
  late: fc.boolean(),
  pause: fc.boolean(),
});

describe('FrameFeed', () => {
  it('delivers every frame once and in order, whatever is lost or repeated on the bus', async () => {
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(fate, { minLength: 1, maxLength: 20 }), async (fates) => {
        runs += 1;
        const callId = `call-${runs}`;
        const faulty = faultyBus(bus);
        const readers = new CallReaders({ bus: faulty.bus, origin: 'gfeed', log: silentLog, limits });
        const subject = subjectOf(addresses.tokens, 'gfeed', callId);
        const taken: string[] = [];
        const ended = new Promise<string>((resolve) => {
          new FrameFeed(
            { bus: faulty.bus, readers, clock: systemClock, deadlines: new Deadlines(), log: silentLog, limits, metrics: noMetrics },
            { callId, deadlineAtMs: systemClock.nowMs() + 60_000, isDetached: false },
            {
              onContent: (sse) => taken.push(Buffer.from(sse).toString()),
              onFrame: (frame) => {
                taken.push(frame.kind === 'body' ? 'body' : Buffer.from(frame.sse).toString());
                if (frame.kind === 'done') resolve('done');
              },
              restart: () => {},
              onNothingLeft: () => {},
              fail: (error) => resolve(error.message),
            },
          );
        });
        // The first frame of the second delivery is never lost: late frames before it would count as the call's.
        bus.tokens.publish(subject, sseFrame('o', { callId, attempt: 2, seq: 1 }, 'data: 1\n\n'));
        const lost = new Set(fates.flatMap((one, position) => (one.lost ? [`2.${position + 2}`] : [])));
        faulty.faults.loses = (about, frame) => about === subject && lost.has(markOf(frame));
        const whole = ['data: 1\n\n'];
        for (const [position, { text, repeated, late, pause }] of fates.entries()) {
          const seq = position + 2;
          const events = chunk(text ?? 'whole');
          const isLast = seq === fates.length + 1;
          // The first content frame states the template, and the last frame is whole.
          const isText = text !== null && position > 0 && !isLast;
          const at = { callId, attempt: 2, seq };
          const content = position === 0 ? templateFrame(at, template, events) : sseFrame('m', at, events);
          const frame = isText ? textFrame(at, JSON.stringify(text)) : isLast ? sseFrame('d', at, events) : content;
          whole.push(events);
          bus.tokens.publish(subject, frame);
          if (late) bus.tokens.publish(subject, sseFrame('m', { callId, attempt: 1, seq }, 'data: late\n\n'));
          if (repeated) bus.tokens.publish(subject, frame);
          if (pause) await new Promise((resolve) => setImmediate(resolve));
        }

        expect(await ended).toBe('done');
        expect(taken).toEqual(whole.map((events, position) => `id: ${callId}.2.${position + 1}\n${events}`));
        await readers.stop();
      }),
      { numRuns: 60 },
    );
  });

  it.each([
    { what: 'before the content of the first', begun: 'o', first: 8, second: 7, read: { worker: 7, frames: 2 } },
    { what: 'behind content of the first', begun: 'm', first: 7, second: 8, read: { worker: 7, frames: 3 } },
  ] as const)('DESIGN 7: has the frames of one worker where two have the same delivery, and the second sends $what', async ({ begun, first, second, read }) => {
    const readers = new CallReaders({ bus, origin: 'gtwo', log: silentLog, limits });
    const callId = 'gtwo-call';
    const taken: string[] = [];
    const ended = new Promise<string>((resolve) => {
      new FrameFeed(
        { bus, readers, clock: systemClock, deadlines: new Deadlines(), log: silentLog, limits, metrics: noMetrics },
        { callId, deadlineAtMs: systemClock.nowMs() + 60_000, isDetached: false },
        {
          onContent: (sse) => taken.push(Buffer.from(sse).toString()),
          onFrame: (frame) => {
            if (frame.kind !== 'body') taken.push(Buffer.from(frame.sse).toString());
            if (frame.kind === 'done') resolve('done');
          },
          restart: () => taken.splice(0),
          onNothingLeft: () => {},
          fail: (error) => resolve(error.message),
        },
      );
    });
    const send = (letter: 'o' | 'm' | 'd', seq: number, worker: number) =>
      bus.tokens.publish(subjectOf(addresses.tokens, 'gtwo', callId), sseFrame(letter, { callId, attempt: attemptOf(1, worker), seq }, 'data: x\n\n'));
    send(begun, 1, first);
    send('m', 1, second);
    send('d', 2, second);
    if (begun === 'm') {
      send('m', 2, first);
      send('d', 3, first);
    }

    expect(await ended).toBe('done');
    const ids = Array.from({ length: read.frames }, (_, index) => `id: ${callId}.${attemptOf(1, read.worker)}.${index + 1}`);
    expect(taken.map((sse) => sse.split('\n')[0])).toEqual(ids);
    await readers.stop();
  });

  it('fails when more frames come than it can buffer during a replay', async () => {
    const faulty = faultyBus(bus);
    faulty.faults.beforeReplay = () => new Promise(() => {});
    const readers = new CallReaders({ bus: faulty.bus, origin: 'gfull', log: silentLog, limits });
    const failed = failureOfCall({ ...gatewayLimits, pendingBytes: 1_000 }, faulty.bus, readers);
    for (let seq = 2; seq < 50; seq += 1)
      bus.tokens.publish('tok.gfull.call', sseFrame('m', { callId: 'call', attempt: 1, seq }, `data: ${'x'.repeat(50)}\n\n`));

    expect(await failed).toBe('too many frames arrived during a replay');
    await readers.stop();
  });

  it.each([
    ['rejects', () => Promise.reject(new Error('no'))],
    ['never answers', () => new Promise<void>(() => {})],
  ])('fails the call when a gap can not be read because the bus %s', async (_, beforeReplay) => {
    const faulty = faultyBus(bus);
    faulty.faults.beforeReplay = beforeReplay;
    const readers = new CallReaders({ bus: faulty.bus, origin: 'gbroken', log: silentLog, limits });
    const failed = failureOfCall({ ...gatewayLimits, replayMs: 20 }, faulty.bus, readers);
    bus.tokens.publish('tok.gbroken.call', sseFrame('m', { callId: 'call', attempt: 1, seq: 2 }, 'data: x\n\n'));

    expect(await failed).toBe('A part of the answer was lost in transit');
    await readers.stop();
  });
});

describe('a gap', () => {
  const [first, second] = [
    sseFrame('m', { callId: 'call', attempt: 1, seq: 1 }, 'data: 1\n\n'),
    sseFrame('m', { callId: 'call', attempt: 1, seq: 2 }, 'data: 2\n\n'),
  ];

  /** Replays of a call that lost its second live frame, which only a later replay has. */
  async function readingsOf(rest: readonly Uint8Array[], keptFrom: number): Promise<{ asked: unknown[]; end: string }> {
    const asked: unknown[] = [];
    const late: Bus = {
      ...bus,
      tokens: {
        publish: (...args) => bus.tokens.publish(...args),
        subscribe: (...args) => bus.tokens.subscribe(...args),
        replay: async (_, upTo) => {
          asked.push(upTo);
          return asked.length < keptFrom ? [first, ...rest] : [first, second, ...rest];
        },
      },
    };
    const readers = new CallReaders({ bus: late, origin: 'glate', log: silentLog, limits });
    const end = new Promise<string>((resolve) => {
      const call = { callId: 'call', deadlineAtMs: systemClock.nowMs() + 60_000, isDetached: false };
      new FrameFeed({ bus: late, readers, clock: systemClock, deadlines: new Deadlines(), log: silentLog, limits: gatewayLimits, metrics: noMetrics }, call, {
        onContent: () => {},
        onFrame: (frame) => {
          if (frame.kind === 'done') resolve('done');
        },
        restart: () => {},
        onNothingLeft: () => {},
        fail: (error) => resolve(error.message),
      });
    });
    for (const frame of [first, ...rest]) bus.tokens.publish('tok.glate.call', frame);
    const ended = await end;
    await readers.stop();
    return { asked, end: ended };
  }
  const [third, done] = [
    sseFrame('m', { callId: 'call', attempt: 1, seq: 3 }, 'data: 3\n\n'),
    sseFrame('d', { callId: 'call', attempt: 1, seq: 4 }, 'data: 4\n\n'),
  ];

  it('is replayed at once, then when all frames are retained, and once more for a busy worker', async () => {
    expect(await readingsOf([third, done], 1)).toEqual({ asked: ['kept'], end: 'done' });
    expect(await readingsOf([third, done], 2)).toEqual({ asked: ['kept', 'now'], end: 'done' });
    expect(await readingsOf([third, done], 3)).toEqual({ asked: ['kept', 'now', 'now'], end: 'done' });
  });

  it('that is still open after three replays fails the call', async () => {
    expect(await readingsOf([third, done], 4)).toEqual({ asked: ['kept', 'now', 'now'], end: 'A part of the answer was lost in transit' });
  });
});

/** What the feed of the call `call` fails with. */
function failureOfCall(limits: GatewayLimits, from: Bus, readers: CallReaders): Promise<string> {
  return new Promise((resolve) => {
    const call = { callId: 'call', deadlineAtMs: systemClock.nowMs() + 60_000, isDetached: false };
    new FrameFeed({ bus: from, readers, clock: systemClock, deadlines: new Deadlines(), log: silentLog, limits, metrics: noMetrics }, call, {
      onContent: () => {},
      onFrame: () => {},
      restart: () => {},
      onNothingLeft: () => {},
      fail: (error) => resolve(error.message),
    });
  });
}
