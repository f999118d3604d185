import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { type NatsServer, startNatsServer } from '../../../scripts/servers/test-services.mjs';
import { openNatsBus } from '../nats-bus.ts';

let server: NatsServer;
beforeAll(async () => {
  server = await startNatsServer();
});
afterAll(async () => {
  await server?.close();
});

/** A proxy to the broker that records what each connection sends. */
async function listeningWay(url: string) {
  const { hostname, port } = new URL(url);
  const sent: string[] = [];
  const sockets = new Set<Socket>();
  const way = createServer((client) => {
    const index = sent.push('') - 1;
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
  return { url: `nats://127.0.0.1:${address.port}`, sent, close };
}

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
