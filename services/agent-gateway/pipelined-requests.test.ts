import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { closeApp } from '#shared/http-server/serve.ts';
import type { Database } from '#shared/storage/database.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { buildApp } from './app.ts';
import { assemble } from './components.ts';
import { limits } from './limits.ts';
import { RequestsInFlight } from './requests-in-flight.ts';
import { gatewaysOf } from './test-support/gateways.ts';
import { BEARER, openTestDeployment, type TestDeployment } from './test-support/test-deployment.ts';
import { until } from './test-support/until.ts';

let deployment: TestDeployment;
const { newSession } = gatewaysOf(() => deployment);
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterAll(() => deployment.close());

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

let openConnections: () => number = () => 0;

async function listening(changes: Parameters<TestDeployment['deps']>[0] = {}, knownSession: string | null = null) {
  const deps = deployment.deps({ streaming: true, ...changes });
  const parts = assemble(deps);
  const app = buildApp(deps, parts);
  const inFlight = new RequestsInFlight();
  inFlight.follow(app);
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  ends.push(() => closeApp(app, limits.cutAfterMs));
  const sockets = new Set<object>();
  app.server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  openConnections = () => sockets.size;
  const sessionId = knownSession ?? (await newSession({ url }));
  /** Pipelines the requests on one connection. */
  const pipeline = (...requests: { accept: string; query?: string }[]) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
    const head = (accept: string, query: string) =>
      `GET /sessions/${sessionId}/events?${query} HTTP/1.1\r\nhost: x\r\nauthorization: ${BEARER.authorization}\r\naccept: ${accept}\r\n\r\n`;
    socket.write(requests.map(({ accept, query = 'wait_for_data=60' }) => head(accept, query)).join(''));
    return socket;
  };
  return { parts, inFlight, pipeline, sessionId };
}

it('releases polls and streams that were pipelined behind others when their client disconnects', async () => {
  const { parts, inFlight, pipeline } = await listening();
  const socket = pipeline({ accept: 'application/json' }, { accept: 'application/json' }, { accept: 'text/event-stream' }, { accept: 'text/event-stream' });
  await until(() => parts.polls.size === 2 && parts.streams.size === 2, 'all readers');

  socket.destroy();

  await until(() => parts.polls.size === 0 && parts.streams.size === 0, 'all places');
  await inFlight.whenIdle(600_000); // nothing is left to drain
});

it('drops a pipelined stream whose output accumulates behind a poll', async () => {
  const { parts, pipeline, sessionId } = await listening({ waits: { heartbeatMs: 1_000 } });
  const socket = pipeline({ accept: 'application/json', query: 'wait_for_data=60&kinds=tool' }, { accept: 'text/event-stream' });
  await until(() => parts.polls.size === 1 && parts.streams.size === 1, 'both readers');

  const say = () => deployment.owner.append(sessionId, { kind: 'assistant_message', text: 'x'.repeat(200_000) });
  for (let n = 0; n < 3; n += 1) await say();

  await until(() => parts.streams.size === 0, 'the place of the stream');
  expect(parts.polls.size).toBe(1);
  socket.destroy();
  await until(() => parts.polls.size === 0, 'the place of the poll');
});

it('refuses requests when too many of one connection are open', async () => {
  const { parts, pipeline, sessionId } = await listening();
  const socket = pipeline(...Array.from({ length: limits.requestsPerConnection + 20 }, () => ({ accept: 'application/json' })));
  await until(() => parts.polls.size === limits.requestsPerConnection, 'as many as there may be');
  let text = '';
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1');
  });

  await deployment.owner.append(sessionId, { kind: 'assistant_message', text: 'Hello' });

  await until(() => text.split('HTTP/1.1 503').length - 1 === 20, 'the refusals');
  expect(text.split('HTTP/1.1 200').length - 1).toBe(limits.requestsPerConnection);
  socket.destroy();
});

it('reserves no slot for a client that disconnected before its request was admitted', async () => {
  let admit = () => {};
  const asked = new Promise<void>((resolve) => {
    admit = resolve;
  });
  let asks = 0;
  const database: Database = {
    ...deployment.database,
    query: async (statement, parameters) => {
      if (typeof statement !== 'string' && statement.name === 'agent-gateway-bundle') {
        asks += 1;
        await asked;
      }
      return deployment.database.query(statement, parameters);
    },
  };
  const { parts, inFlight, pipeline } = await listening({ database, waits: { bootCheckMs: 60_000, readinessMs: 60_000 } }, 'ses_late');
  await deployment.database.query(
    `insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at) values ('ses_late', 0, 0, 1, '{}', '{}', now(), now())`,
  );
  const socket = pipeline(...Array.from({ length: 2 }, () => [{ accept: 'application/json' }, { accept: 'text/event-stream' }]).flat());
  await until(() => asks > 0, 'the question whether it is ready');
  let isClosed = false;
  socket.once('close', () => {
    isClosed = true;
  });
  socket.destroy();
  await until(() => isClosed, 'the end of the connection');
  await until(() => openConnections() === 0, 'the end at the other side');

  admit();

  await until(async () => (await parts.gate.admits()) === 'ready', 'readiness');
  await until(() => parts.polls.size === 0 && parts.streams.size === 0, 'all places');
  await inFlight.whenIdle(600_000);
  expect([parts.polls.size, parts.streams.size]).toEqual([0, 0]);
});
