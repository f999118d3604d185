import { Socket } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { type NatsServer, startNatsServer } from '../../../scripts/servers/test-services.mjs';
import type { Bus } from '../../bus.ts';
import { Collector, eventually, gate } from '../../conformance/under-test.ts';
import { openNatsBus } from '../nats-bus.ts';

let server: NatsServer;
const opened: Bus[] = [];
beforeAll(async () => {
  server = await startNatsServer();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((bus) => bus.close()));
});
afterAll(() => server?.close());

async function open({ isLocal }: { isLocal: boolean }): Promise<Bus> {
  const bus = await openNatsBus({ servers: server.url, user: null, password: null, isLocal, log: silentLog });
  opened.push(bus);
  return bus;
}

it('dispatches go to the consumer of their process while it has free slots, and from then on to others by the queue', async () => {
  const [mine, other] = [await open({ isLocal: true }), await open({ isLocal: false })];
  const [here, elsewhere] = [new Collector<string>(), new Collector<string>()];
  const blocked = gate();
  const slots = { concurrency: 16, ackWaitMs: 60_000 };
  mine.work.consume('router.call', slots, async (item) => {
    here.add(item.messageId);
    await blocked.opened;
    await item.ack();
  });
  other.work.consume('router.call', { ...slots, concurrency: 64 }, async (item) => {
    elsewhere.add(item.messageId);
    await item.ack();
  });
  const refused = new Collector<string>();
  mine.work.onRefused(refused.add);
  const ids = Array.from({ length: 40 }, (_, n) => `call-${n}`);
  for (const id of ids) mine.work.dispatch('router.call', id, Buffer.from('body'));
  // Before anything was read from the broker.
  await Promise.resolve();
  const atOnce = [...here.items];
  expect(atOnce.length).toBeGreaterThan(8);

  await eventually(
    async () => here.items.length + elsewhere.items.length,
    (count) => count >= ids.length,
  );
  expect([...here.items, ...elsewhere.items].sort()).toEqual([...ids].sort());
  expect(here.items.length).toBeLessThanOrEqual(slots.concurrency);
  expect(refused.items).toEqual([]);
  blocked.open();
});

it('frames and notices reach readers in their process and in others, each of them once', async () => {
  const [mine, other] = [await open({ isLocal: true }), await open({ isLocal: true })];
  const frames = ['se', ...Array.from({ length: 50 }, (_, n) => `t${n}`), 'd'];
  const collected = new Map([mine, other].map((bus) => [bus, { frames: new Collector<string>(), notices: new Collector<string>() }]));
  for (const [bus, { frames: read, notices }] of collected) {
    await bus.tokens.subscribe('tok.gw1.*', (_, frame) => read.add(Buffer.from(frame).toString())).ready();
    await bus.notices.subscribe('ctl.*', (subject) => notices.add(subject)).ready();
  }
  for (const frame of frames) mine.tokens.publish('tok.gw1.call1', Buffer.from(frame));
  for (const call of ['a', 'b']) mine.notices.publish(`ctl.${call}`, '');
  for (const { frames: read, notices } of collected.values()) await Promise.all([read.atLeast(frames.length), notices.atLeast(2)]);
  // What would come a second time would have come by the reply to this.
  for (const bus of collected.keys()) await bus.notices.subscribe('evt.last', () => {}).ready();
  for (const bus of collected.keys()) await bus.tokens.subscribe('tok.last.*', () => {}).ready();

  for (const { frames: read, notices } of collected.values()) {
    expect(read.items).toEqual(frames);
    expect(notices.items).toEqual(['ctl.a', 'ctl.b']);
  }
  expect((await other.tokens.replay('tok.gw1.call1', 'now')).map((frame) => Buffer.from(frame).toString())).toEqual(frames);
});

it.each([
  ['behind a usage record', 'd', true],
  ['with the first content of an answer', 's', false],
])('a frame %s is read here once that was written', async (_, letter, hasRecord) => {
  const bus = await open({ isLocal: true });
  const order = new Collector<string>();
  await bus.tokens.subscribe('tok.gw1.*', (_subject, frame) => order.add(Buffer.from(frame).toString())).ready();
  await nextTick();
  const uncork = Socket.prototype.uncork;
  const spy = vi.spyOn(Socket.prototype, 'uncork').mockImplementation(function (this: Socket) {
    order.add('written');
    return uncork.call(this);
  });
  try {
    bus.tokens.publish('tok.gw1.call1', Buffer.from('t1'));
    if (hasRecord) void bus.usage.append('gen-1', '{}');
    bus.tokens.publish('tok.gw1.call1', Buffer.from(letter));
    await eventually(
      async () => order.items,
      (items) => items.includes(letter),
    );
  } finally {
    spy.mockRestore();
  }

  expect(order.items.slice(0, 3)).toEqual(['t1', 'written', letter]);
});
