import { get } from 'node:http';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openPglite } from '#shared/storage/pglite/open-pglite.ts';
import { buildApp } from '../app.ts';
import { assemble } from '../parts.ts';
import { closeAtOnce } from '../service.ts';
import { gatewaysOf } from '../test-support/gateways.ts';
import { BEARER, type House, openHouse } from '../test-support/house.ts';
import { until } from '../test-support/until.ts';

let house: House;
const { start, newSession, stream, stopAll } = gatewaysOf(() => house);
beforeAll(async () => {
  const database = await openPglite({ folder: null });
  house = await openHouse({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
}, 60_000);
afterEach(() => stopAll());
afterAll(() => house.close());

const SAY = (text: string) => ({ kind: 'assistant_message', text }) as const;

describe('a stream whose client is slow', () => {
  it('is dropped when its client reads nothing, and nobody else notices', async () => {
    const gateway = await start();
    const sessionId = await newSession(gateway);
    const reading = await stream(gateway, sessionId);
    const { hostname, port } = new URL(gateway.url);
    const socket = connect(Number(port), hostname).on('error', () => {});
    let isClosed = false;
    socket.on('close', () => {
      isClosed = true;
    });
    socket.write(`GET /sessions/${sessionId}/events HTTP/1.1\r\nhost: x\r\nauthorization: ${BEARER.authorization}\r\naccept: text/event-stream\r\n\r\n`);
    await until(() => socket.bytesRead > 0, 'the beginning of the stream');
    socket.pause();

    // More than the buffers of two kernels and ours can take together.
    const events = 40;
    for (let n = 0; n < events; n += 1) {
      await house.owner.append(sessionId, SAY('x'.repeat(512 * 1_024)));
      await reading.waitFor('each event', () => reading.events.length === n + 1);
    }
    socket.resume();

    await until(() => isClosed, 'the end of the connection');
    expect(socket.bytesRead).toBeLessThan(events * 512 * 1_024);
  });

  it('takes the largest event to a client that catches up slowly, whole and with nothing in between', async () => {
    const stalledMs = 1_000;
    const gateway = await start({ waits: { stalledMs, heartbeatMs: 20 } });
    const sessionId = await newSession(gateway);
    const [event] = await house.owner.append(sessionId, SAY('x'.repeat(16 * 1_024 * 1_024)));
    const whole = `id: 0\nevent: assistant_message\ndata: ${JSON.stringify(event)}\n\n`;
    const pieces: Buffer[] = [];
    let size = 0;
    let isClosed = false;
    const startedAtMs = performance.now();
    const request = get(`${gateway.url}/sessions/${sessionId}/events`, { headers: { ...BEARER, accept: 'text/event-stream' } }, (response) => {
      response.on('data', (bytes: Buffer) => {
        pieces.push(bytes);
        size += bytes.length;
        // As on a slow line: never idle for long, and far from done when the time of one that has stopped is over.
        response.pause();
        setTimeout(() => response.resume(), 15);
      });
      response.on('error', () => {});
      response.on('close', () => {
        isClosed = true;
      });
    });
    request.on('error', () => {});

    await until(() => size > whole.length + 1_000 || isClosed, 'the whole event, and heartbeats', 30_000);
    request.destroy();

    expect(performance.now() - startedAtMs).toBeGreaterThan(stalledMs);
    expect(Buffer.concat(pieces).toString('utf8').includes(whole)).toBe(true);
  }, 60_000);

  it('is dropped when its client takes nothing while it catches up', async () => {
    const deps = house.deps({ waits: { stalledMs: 50 } });
    const parts = assemble(deps);
    const app = buildApp(deps, parts);
    const { hostname, port, origin } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
    const sessionId = await newSession({ url: origin });
    const size = 16 * 1_024 * 1_024;
    await house.owner.append(sessionId, SAY('x'.repeat(size)));
    const socket = connect(Number(port), hostname).on('error', () => {});
    socket.write(`GET /sessions/${sessionId}/events HTTP/1.1\r\nhost: x\r\nauthorization: ${BEARER.authorization}\r\naccept: text/event-stream\r\n\r\n`);
    await until(() => socket.bytesRead > 0, 'the beginning of the stream');

    socket.pause();

    await until(() => parts.streams.size === 0, 'its place', 20_000);
    expect(socket.bytesRead).toBeLessThan(size);
    socket.destroy();
    await closeAtOnce(app);
  }, 30_000);
});
