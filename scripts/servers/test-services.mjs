import { isProgram, runScript } from '../run-script.mjs';
import { natsClusterPings, openNats, openPostgres, openRedis } from './stores.mjs';
import { ensureTestPrograms, testProgram } from './test-programs.mjs';
import { closeRun, openRun } from './test-run.mjs';
import { freePort } from './test-tcp.mjs';

/** @typedef {import('./test-run.mjs').TestRun} TestRun */
/** @typedef {import('./stores.mjs').Store} Store */

/** @typedef {{ redisUrl: string, postgresUrl: string, chromiumPath: string, stop: () => Promise<void> }} TestServices */
/** @typedef {{ close: () => Promise<void> }} Closing `close` ends it and removes what it wrote */
/** @typedef {Store & Closing & { folder: string, stop: () => Promise<void> }} NatsServer `stop` lets it flush; `folder` of its streams */
/** @typedef {Store & Closing & { folder: string }} TestPostgres `folder` of its data */
/** @typedef {Store & Closing & { freeze: () => void, thaw: () => void }} TestRedis `freeze` pauses the process */

/**
 * Starts a Redis and a PostgreSQL for one run of tests, on free ports, in a temporary folder, independent of the machine's own servers. NATS starts
 * fast enough for one per test file: {@link startNatsServer}.
 *
 * @returns {Promise<TestServices>}
 */
export async function startTestServices() {
  const { redis, postgresBin, chromium: chromiumPath } = await ensureTestPrograms();
  const opened = await withOwnRun(async (run) => {
    const [{ url: redisUrl }, { url: postgresUrl }] = await Promise.all([openRedis(run, { program: redis }), openPostgres(run, { bin: postgresBin })]);
    return { redisUrl, postgresUrl };
  });
  return { ...opened, chromiumPath, stop: opened.close };
}

/**
 * Starts a NATS server with JetStream for one test file, in some 40 ms. An unclosed one ends with this process.
 *
 * @param {Omit<import('./stores.mjs').NatsOptions, 'program' | 'env'>} [options]
 * @returns {Promise<NatsServer>} started
 */
export async function startNatsServer(options = {}) {
  const program = await testProgram('nats');
  const server = await withOwnRun((run) => openNats(run, { program, ...options }));
  return Object.assign(server, { stop: () => server.end('SIGTERM') });
}

/**
 * Starts NATS servers of one cluster, which store streams with up to as many replicas.
 *
 * @param {number} size
 * @returns {Promise<{ servers: NatsServer[], url: string, close: () => Promise<void> }>} `url` names all of them
 */
export async function startNatsCluster(size) {
  const routes = await Promise.all(Array.from({ length: size }, freePort));
  const ports = await Promise.all(Array.from({ length: size }, freePort));
  const all = routes.map((port) => `nats://127.0.0.1:${port}`).join(',');
  const servers = await Promise.all(
    routes.map((route, index) => {
      const cluster = `cluster { name: test, listen: "127.0.0.1:${route}", routes: [${all}] }`;
      const config = [`server_name: broker-${index}`, 'jetstream {}', ...natsClusterPings, cluster].join('\n');
      return startNatsServer({ config: `${config}\n`, port: ports[index] });
    }),
  );
  return { servers, url: servers.map(({ url }) => url).join(','), close: async () => void (await Promise.all(servers.map(({ close }) => close()))) };
}

/**
 * Starts a PostgreSQL for tests that stop, kill or restart it.
 *
 * @param {Omit<import('./stores.mjs').PostgresOptions, 'bin'>} [options]
 * @returns {Promise<TestPostgres>} started
 */
export async function startTestPostgres(options = {}) {
  const bin = await testProgram('postgresBin');
  return withOwnRun((run) => openPostgres(run, { bin, ...options }));
}

/**
 * Starts a Redis for tests that stop, kill or freeze it.
 *
 * @param {{ password?: string, started?: boolean }} [options] `started: false`: it waits for `start`
 * @returns {Promise<TestRedis>}
 */
export async function startTestRedis(options = {}) {
  const program = await testProgram('redis');
  const server = await withOwnRun((run) => openRedis(run, { program, ...options }));
  const { close } = server;
  const thaw = () => server.signal('SIGCONT');
  return Object.assign(server, {
    freeze: () => server.signal('SIGSTOP'),
    thaw,
    close: async () => {
      thaw(); // a frozen process would not handle the signal
      await close();
    },
  });
}

/**
 * Opens a run for one resource; closing the resource closes the run.
 *
 * @template {object} Opened
 * @param {(run: TestRun) => Promise<Opened>} open
 * @returns {Promise<Opened & Closing>}
 */
async function withOwnRun(open) {
  const run = await openRun();
  try {
    return Object.assign(await open(run), { close: () => closeRun(run) });
  } catch (error) {
    await closeRun(run);
    throw error;
  }
}

if (isProgram(import.meta.url)) {
  await runScript(async () => {
    const { redisUrl, postgresUrl, chromiumPath } = await startTestServices();
    const { url: natsUrl } = await startNatsServer();
    console.log([natsUrl, redisUrl, postgresUrl, chromiumPath, 'Ctrl-C ends them.'].join('\n')); // the servers keep this process running
  });
}
