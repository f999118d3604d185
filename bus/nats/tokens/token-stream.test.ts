import { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { type NatsServer, startNatsServer } from '../../../scripts/servers/test-services.mjs';
import type { Bus } from '../../bus.ts';
import { Collector } from '../../conformance/under-test.ts';
import { CoreSubscriptions } from '../connection/core-subscriptions.ts';
import { openNatsBus } from '../nats-bus.ts';
import { streams } from '../streams.ts';

let server: NatsServer;
beforeAll(async () => {
  server = await startNatsServer();
});
afterAll(async () => {
  await server?.close();
});

const open = () => openNatsBus({ servers: server.url, user: null, password: null, log: silentLog });

it('frames of a call that needs no retention any more leave nothing in the broker’s memory', async () => {
  const bus = await open();
  const received = new Collector<string>();
  await bus.tokens.subscribe('tok.ses.*', (_, frame) => received.add(Buffer.from(frame).toString())).ready();
  const frames = ['Ta', 'Tb', 'D'];
  for (const frame of frames) bus.tokens.publish('tok.ses.call1', Buffer.from(frame));
  expect(await received.atLeast(3)).toEqual(frames);
  // A frame of another call is stored `soon` after pending ones of this call would be.
  bus.tokens.publish('tok.ses.call2', Buffer.from('T'));
  expect(await bus.tokens.replay('tok.ses.call2', 'now')).toHaveLength(1);

  const broker = await connect({ servers: server.url });
  const { state } = await (await jetstreamManager(broker)).streams.info(streams.tokens.name, { subjects_filter: 'tok.ses.*' });
  expect(state.subjects).toEqual({ 'tok.ses.call2': 1 });
  await broker.close();
  await bus.close();
});

it('what is published in the tick in which the bus is closed is delivered', async () => {
  const [worker, gateway] = [await open(), await open()];
  const received = new Collector<string>();
  await gateway.tokens.subscribe('tok.gw1.*', (_, frame) => received.add(Buffer.from(frame).toString())).ready();
  worker.tokens.publish('tok.gw1.call1', Buffer.from('text'));
  await worker.close();

  expect(await received.atLeast(1)).toEqual(['text']);
  expect((await gateway.tokens.replay('tok.gw1.call1')).map((frame) => Buffer.from(frame).toString())).toEqual(['text']);
  await gateway.close();
});

it.each([
  ['at a flush', (bus: Bus) => bus.flush()],
  ['with the frame that states the template, which a reader waits for', (bus: Bus) => bus.tokens.publish('tok.gw1.call3', Buffer.from('s'))],
  ['with a whole answer, when no other item of work is in flight', (bus: Bus) => bus.tokens.publish('tok.gw1.call3', Buffer.from('b'))],
])('what was published is sent before the end of the tick %s', async (_, leave) => {
  const bus = await open();
  await nextTurn();
  const uncorked = vi.spyOn(Socket.prototype, 'uncork');
  bus.tokens.publish('tok.gw1.call1', Buffer.from('first'));
  bus.tokens.publish('tok.gw1.call2', Buffer.from('ta'));
  await Promise.resolve().then(() => {});
  expect(uncorked).not.toHaveBeenCalled();
  leave(bus);
  await Promise.resolve().then(() => {});

  expect(uncorked).toHaveBeenCalledTimes(1);
  uncorked.mockRestore();
  await bus.close();
});

it('a whole answer waits for the end of the tick when other items of work are in flight', async () => {
  const bus = await open();
  const taken = new Collector<string>();
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const consuming = bus.work.consume('router.turn', { concurrency: 2, ackWaitMs: 60_000 }, async (item) => {
    taken.add(item.messageId);
    await finished;
    await item.ack();
  });
  for (const id of ['one', 'two']) await bus.work.publish('router.turn', id, '{}');
  await taken.atLeast(2);
  await nextTurn();
  const uncorked = vi.spyOn(Socket.prototype, 'uncork');
  bus.tokens.publish('tok.gw1.call1', Buffer.from('b'));
  await Promise.resolve().then(() => {});

  expect(uncorked).not.toHaveBeenCalled();
  uncorked.mockRestore();
  finish();
  await consuming.stop();
  await bus.close();
});

it('the broker sends a batch once to a process that reads many calls of an origin', async () => {
  const bus = await open();
  const subscribe = vi.spyOn(CoreSubscriptions.prototype, 'subscribe');
  const readers = Array.from({ length: 20 }, (_, index) => bus.tokens.subscribe(`tok.gw1.call${index}`, () => {}));
  const live = subscribe.mock.calls.map(([pattern]) => pattern).filter((pattern) => pattern.startsWith('live.'));
  subscribe.mockRestore();

  expect(live).toEqual(['live.gw1.*']);
  for (const reader of readers) await reader.stop();
  await bus.close();
});
