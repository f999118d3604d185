import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import type { Heartbeat } from '#bus/messages/heartbeat.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { gatewayLimits } from '../limits.ts';
import { CallReaders } from './call-readers.ts';

const CALLS = 1_000;

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

describe('CallReaders', () => {
  it('DESIGN 7: a gateway has one subscription for all calls that it admits, however many there are', async () => {
    const subscribe = vi.spyOn(bus.tokens, 'subscribe');
    const readers = new CallReaders({ bus, origin: 'gone', log: silentLog, limits: gatewayLimits });
    const taken: string[] = [];
    const held = Array.from({ length: CALLS }, (_, position) =>
      readers.subscribe(`call${position}`, {
        frames: { receive: (frame: Uint8Array) => taken.push(`${position} ${Buffer.from(frame)}`) },
        onBeat: () => {},
        onLoss: () => {},
        onEnd: () => {},
      }),
    );
    for (const position of [0, CALLS - 1]) bus.tokens.publish(`tok.gone.call${position}`, Buffer.from('frame'));

    await expect.poll(() => taken).toEqual(['0 frame', `${CALLS - 1} frame`]);
    expect(subscribe.mock.calls.map(([pattern]) => pattern)).toEqual(['tok.gone.*']);
    for (const { release } of held) release('over');
    await readers.stop();
  });

  it('delivers a frame of a call that began elsewhere once to each reader, however many have resumed it here', async () => {
    const readers = new CallReaders({ bus, origin: 'gtwo', log: silentLog, limits: gatewayLimits });
    const taken: string[] = [];
    const held = ['first', 'second', 'third'].map((name) =>
      readers.subscribe(
        'call',
        { frames: { receive: (frame: Uint8Array) => taken.push(`${name} ${Buffer.from(frame)}`) }, onBeat: () => {}, onLoss: () => {}, onEnd: () => {} },
        'gelse',
      ),
    );
    for (const frame of ['one', 'last']) bus.tokens.publish('tok.gelse.call', Buffer.from(frame));

    await expect.poll(() => taken).toContain('third last');
    expect(taken.sort()).toEqual(['first last', 'first one', 'second last', 'second one', 'third last', 'third one']);
    for (const { release } of held) release('over');
    await readers.stop();
  });

  it('has interest in a call that began elsewhere for as long as the client that it has cut off may resume it, and asks its workers no longer then', async () => {
    const limits = { ...gatewayLimits, graceMs: 60_000 };
    const readers = new CallReaders({ bus, origin: 'gthree', log: silentLog, limits });
    const replies: string[] = [];
    const listening = bus.notices.subscribe('held.w1', (_, body) => replies.push(body));
    const beat = (question: number) => bus.notices.publish('hb.gelse', JSON.stringify({ v: 1, workerId: 'w1', question, calls: ['call'] } satisfies Heartbeat));
    const read = () => {
      const reader = { frames: { receive: () => {} }, onBeat: () => {}, onLoss: () => {}, onEnd: () => {} };
      return readers.subscribe('call', reader, 'gelse');
    };

    read().release('dropped');
    beat(1);
    await expect.poll(() => replies).toEqual([JSON.stringify({ v: 1, from: 'gthree', question: 1, calls: ['call'] })]);
    read().release('over');
    beat(2);
    // A reply to the second one would have come before that to the third.
    const last = read();
    beat(3);
    await expect.poll(() => replies.length).toBe(2);
    expect(replies[1]).toBe(JSON.stringify({ v: 1, from: 'gthree', question: 3, calls: ['call'] }));
    last.release('over');
    await Promise.all([readers.stop(), listening.stop()]);
  });
});
