import { get, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { closeApp } from '#shared/http-server/serve.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { buildApp } from '../app.ts';
import { assemble } from '../components.ts';
import { limits } from '../limits.ts';
import { gatewaysOf } from '../test-support/gateways.ts';
import { BEARER, openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';
import { until } from '../test-support/until.ts';

let deployment: TestDeployment;
const { start, newSession, stream, stopAll } = gatewaysOf(() => deployment);
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(() => stopAll());
afterAll(() => deployment.close());

/** A gateway, and whether its latest response waits for `drain`. */
async function startObserved(waits: { stalledMs: number; heartbeatMs?: number }) {
  const parts = deployment.deps({ waits });
  const app = buildApp(parts, assemble(parts));
  let latest: ServerResponse | null = null;
  const waiting = {
    drains: 0,
    onDrain: () => {},
    get isWaiting() {
      return latest?.writableNeedDrain === true;
    },
  };
  app.server.on('request', (_, response) => {
    latest = response.on('drain', () => {
      waiting.drains += 1;
      waiting.onDrain();
    });
  });
  const { origin } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  return { url: origin, waiting, close: () => closeApp(app, limits.cutAfterMs) };
}

const SAY = (text: string) => ({ kind: 'assistant_message', text }) as const;

describe('a stream whose client is slow', () => {
  it('is dropped when its client reads nothing, without effect on others', async () => {
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

    // More than the buffers of both kernels and of the process hold.
    const events = 40;
    for (let n = 0; n < events; n += 1) {
      await deployment.owner.append(sessionId, SAY('x'.repeat(512 * 1_024)));
      await reading.waitFor('each event', () => reading.events.length === n + 1);
    }
    socket.resume();

    await until(() => isClosed, 'the end of the connection');
    expect(socket.bytesRead).toBeLessThan(events * 512 * 1_024);
  });

  it('sends the largest event to a client that catches up slowly, whole and contiguous', async () => {
    const stalledMs = 3_000;
    const { url, waiting, close } = await startObserved({ stalledMs, heartbeatMs: 20 });
    const sessionId = await newSession({ url });
    const [event] = await deployment.owner.append(sessionId, SAY('x'.repeat(16 * 1_024 * 1_024)));
    const whole = `id: 0\nevent: assistant_message\ndata: ${JSON.stringify(event)}\n\n`;
    const pieces: Buffer[] = [];
    let size = 0;
    let isClosed = false;
    const request = get(`${url}/sessions/${sessionId}/events`, { headers: { ...BEARER, accept: 'text/event-stream' } }).on('error', () => {});
    const response = await new Promise<IncomingMessage>((resolve) => request.once('response', resolve));
    response.on('error', () => {});
    response.on('close', () => {
      isClosed = true;
    });
    response.on('data', (bytes: Buffer) => {
      pieces.push(bytes);
      size += bytes.length;
    });

    // A slow client: reads some bytes within the stall time, while the whole takes longer than that.
    for (let pauses = 0; pauses < 3; pauses += 1) {
      response.pause();
      await until(() => waiting.isWaiting, 'a piece that does not fit');
      await new Promise((resolve) => setTimeout(resolve, 0.4 * stalledMs));
      const isTaken = new Promise<void>((resolve) => {
        waiting.onDrain = () => {
          response.pause();
          resolve();
        };
        response.once('close', resolve);
      });
      response.resume();
      await isTaken;
    }
    waiting.onDrain = () => {};
    response.resume();
    await until(() => size > whole.length + 1_000 || isClosed, 'the whole event, and heartbeats');
    request.destroy();

    expect(Buffer.concat(pieces).toString('utf8').includes(whole)).toBe(true);
    await close();
  });

  it('counts what its client read while this process did not run', async () => {
    const stalledMs = 3_000;
    const { url, waiting, close } = await startObserved({ stalledMs });
    const sessionId = await newSession({ url });
    const size = 16 * 1_024 * 1_024;
    await deployment.owner.append(sessionId, SAY('x'.repeat(size)));
    /** [0]: bytes read; [1]: 1 to read on past the first. */
    const shared = new Int32Array(new SharedArrayBuffer(8));
    const { port } = new URL(url);
    const head = `GET /sessions/${sessionId}/events HTTP/1.1\r\nhost: x\r\nauthorization: ${BEARER.authorization}\r\naccept: text/event-stream\r\n\r\n`;
    // In a worker thread, which runs while this one is blocked.
    const reader = new Worker(
      `const { port, head, shared } = require('node:worker_threads').workerData;
       const socket = require('node:net').connect(port, '127.0.0.1', () => socket.write(head)).on('error', () => {});
       socket.on('data', (bytes) => { if (Atomics.add(shared, 0, bytes.length) > 1_000_000 && Atomics.load(shared, 1) === 0) socket.pause(); });
       setInterval(() => { if (Atomics.load(shared, 1) === 1) socket.resume(); }, 5);`,
      { eval: true, workerData: { port: Number(port), head, shared } },
    );
    let [reads, drains] = [0, -1];
    const isStill = () => {
      const before = { reads, drains };
      [reads, drains] = [Atomics.load(shared, 0), waiting.drains];
      return waiting.isWaiting && reads > 1_000_000 && reads === before.reads && drains === before.drains;
    };
    await until(isStill, 'a client that has stopped reading');

    const untilMs = performance.now() + stalledMs + 500;
    Atomics.store(shared, 1, 1);
    // Blocks this thread until the time is over and the client has read what the kernel buffered.
    while (performance.now() < untilMs || Atomics.load(shared, 0) === reads) Atomics.wait(shared, 0, Atomics.load(shared, 0), 50);

    await until(() => Atomics.load(shared, 0) > size, 'the whole event');
    await reader.terminate();
    await close();
  });

  it('is dropped when its client reads nothing while it catches up', async () => {
    const deps = deployment.deps({ waits: { stalledMs: 50 } });
    const parts = assemble(deps);
    const app = buildApp(deps, parts);
    const { hostname, port, origin } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
    const sessionId = await newSession({ url: origin });
    const size = 16 * 1_024 * 1_024;
    await deployment.owner.append(sessionId, SAY('x'.repeat(size)));
    const socket = connect(Number(port), hostname).on('error', () => {});
    socket.write(`GET /sessions/${sessionId}/events HTTP/1.1\r\nhost: x\r\nauthorization: ${BEARER.authorization}\r\naccept: text/event-stream\r\n\r\n`);
    await until(() => socket.bytesRead > 0, 'the beginning of the stream');

    socket.pause();

    await until(() => parts.streams.size === 0, 'its place');
    expect(socket.bytesRead).toBeLessThan(size);
    socket.destroy();
    await closeApp(app, limits.cutAfterMs);
  });
});
