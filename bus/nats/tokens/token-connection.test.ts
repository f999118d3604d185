import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { type NatsServer, startNatsServer } from '../../../scripts/servers/test-services.mjs';
import type { Bus } from '../../bus.ts';
import { Collector, eventually } from '../../conformance/under-test.ts';
import { openNatsBus } from '../nats-bus.ts';

let server: NatsServer;
beforeAll(async () => {
  server = await startNatsServer();
});
afterAll(async () => {
  await server?.close();
});

/** A proxy to the broker that records what each connection sends, and whether it is open. */
async function listeningWay(url: string) {
  const { hostname, port } = new URL(url);
  const sent: string[] = [];
  const sockets = new Set<Socket>();
  const clients: Socket[] = [];
  let isOpen = true;
  const way = createServer((client) => {
    if (!isOpen) return void client.destroy();
    const index = sent.push('') - 1;
    clients.push(client);
    const broker = connect(Number(port), hostname);
    for (const socket of [client, broker]) sockets.add(socket.on('error', () => {}));
    client.on('data', (bytes) => {
      sent[index] += bytes.toString('latin1');
    });
    client.pipe(broker).pipe(client);
  });
  way.listen(0, '127.0.0.1');
  await once(way, 'listening');
  const address = way.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    way.close();
    await once(way, 'close');
  };
  const setOpen = (value: boolean) => {
    isOpen = value;
    if (!isOpen) for (const socket of sockets) socket.destroy();
  };
  /** As a server in lame duck mode. @param index of the connection */
  const announceEnd = (index: number) => clients[index]?.write(`INFO ${JSON.stringify({ ...INFO, ldm: true })}\r\n`);
  return { url: `nats://127.0.0.1:${address.port}`, sent, clients, setOpen, announceEnd, close };
}

type Way = Awaited<ReturnType<typeof listeningWay>>;

/** What a client keeps of a server's INFO. */
const INFO = { server_id: 'one', version: '2.10.27', proto: 1, headers: true, max_payload: 1024 * 1024, host: '127.0.0.1', port: 4222 };

/** Frames of one call as a reader beside them gets them. */
async function collect(): Promise<{ received: Collector<string>; reader: Bus }> {
  const reader = await openNatsBus({ servers: server.url, user: null, password: null, log: silentLog });
  const received = new Collector<string>();
  await reader.tokens.subscribe('tok.gw1.*', (_, frame) => received.add(Buffer.from(frame).toString())).ready();
  return { received, reader };
}

const FRAMES = ['s0.0\n', 't1.2\na', 't1.3\nb', 'd'];

/** A bus that has published the frames while it could not reach the broker, and a reader that can. */
async function publishedWhileAway() {
  const [way, { received, reader }] = [await listeningWay(server.url), await collect()];
  const bus = await openNatsBus({ servers: way.url, user: null, password: null, log: silentLog });
  way.setOpen(false);
  await eventually(
    async () => bus.isReady(),
    (isReady) => !isReady,
  );
  for (const frame of FRAMES) bus.tokens.publish('tok.gw1.call1', Buffer.from(frame));
  return { way, bus, received, reader };
}

it('DESIGN 7: frames that are published while their connection is away for a moment arrive in order, and are stored', async () => {
  const { way, bus, received, reader } = await publishedWhileAway();
  way.setOpen(true);

  expect(await received.atLeast(FRAMES.length)).toEqual(FRAMES);
  expect((await reader.tokens.replay('tok.gw1.call1', 'now')).map((frame) => Buffer.from(frame).toString())).toEqual(FRAMES);
  await Promise.all([bus.close(), reader.close()]);
  await way.close();
});

it('DESIGN 7: a process that stops while its connection is away for a moment sends what it holds first', async () => {
  const { way, bus, received, reader } = await publishedWhileAway();
  const closed = bus.close();
  way.setOpen(true);
  await closed;

  expect(await received.atLeast(FRAMES.length)).toEqual(FRAMES);
  await reader.close();
  await way.close();
});

it('DESIGN 3: tokens move to another server once theirs is about to end, and no frame is lost by that', async () => {
  const { received, reader } = await collect();
  const ways = [await listeningWay(server.url), await listeningWay(server.url)];
  const bus = await openNatsBus({ servers: ways.map(({ url }) => url).join(','), user: null, password: null, log: silentLog });
  bus.tokens.publish('tok.gw1.call1', Buffer.from('s0.0\n'));
  await received.atLeast(1);
  const has = (way: Way) => way.sent.findIndex((text) => text.includes('PUB tok.gw1.call1'));
  const [former, next] = ways.sort((one, other) => has(other) - has(one)) as [Way, Way];
  const closed = once(former.clients[has(former)] as Socket, 'close');
  former.announceEnd(has(former));
  const frames = Array.from({ length: 2_000 }, (_, index) => `t1.${index}\n`);
  for (const frame of frames) {
    bus.tokens.publish('tok.gw1.call1', Buffer.from(frame));
    await nextTurn();
  }
  await closed;
  bus.tokens.publish('tok.gw1.call1', Buffer.from('d'));
  await received.atLeast(frames.length + 2);

  expect(received.items).toEqual(['s0.0\n', ...frames, 'd']);
  expect(has(next)).not.toBe(-1);
  // What was sent is confirmed before the connection ends.
  expect(former.sent[has(former)]).toMatch(/PING\r\n$/);
  await Promise.all([bus.close(), reader.close()]);
  for (const way of ways) await way.close();
});

it('DESIGN 8: a usage record leaves ahead of the frame that is published after it, on the same connection', async () => {
  const way = await listeningWay(server.url);
  const bus = await openNatsBus({ servers: way.url, user: null, password: null, log: silentLog });
  // Text is batched until the end of the tick, terminal frames are not.
  for (let call = 0; call < 20; call += 1) bus.tokens.publish(`tok.gw1.call${call}`, Buffer.from('text'));
  const stored = Array.from({ length: 20 }, (_, call) => {
    const appended = bus.usage.append(`gen-${call}`, `record-${call};`);
    bus.tokens.publish(`tok.gw1.call${call}`, Buffer.from(`frame-${call}`));
    return appended;
  });
  await Promise.all(stored);
  const connection = way.sent.findIndex((text) => text.includes('frame-0'));
  const sent = way.sent[connection] ?? '';

  expect(connection).not.toBe(-1);
  for (let call = 0; call < 20; call += 1) {
    expect(sent.indexOf(`record-${call};`), `record ${call} is sent there`).not.toBe(-1);
    expect(sent.indexOf(`record-${call};`)).toBeLessThan(sent.indexOf(`frame-${call}\r\n`));
  }
  await bus.close();
  await way.close();
});

it('DESIGN 7: tokens have a separate connection, and request no ack', async () => {
  const way = await listeningWay(server.url);
  const bus = await openNatsBus({ servers: way.url, user: null, password: null, log: silentLog });
  bus.tokens.publish('tok.gw1.call1', Buffer.from('frame'));
  bus.notices.publish('evt.ses_1', 'news');
  await bus.commands.append(1, 'one', '{}');
  const indexOf = (words: string) => way.sent.findIndex((text) => text.includes(words));
  await expect.poll(() => [indexOf('PUB tok.gw1.call1'), indexOf('PUB evt.ses_1')]).not.toContain(-1);
  const [tokens, others] = [indexOf('PUB tok.gw1.call1'), indexOf('PUB evt.ses_1')];

  expect(tokens).not.toBe(others);
  expect(way.sent[tokens]).not.toMatch(/PUB (evt|cmd|\$JS)/);
  // Subject and size; a reply subject would be between them.
  expect(way.sent[tokens]).toContain('PUB tok.gw1.call1 5\r\n');
  await bus.close();
  await way.close();
});
