import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startCluster } from '../../scripts/servers/start-cluster.mjs';
import { median } from '../figures.mjs';
import { Connection } from '../http/connection.mjs';
import { addressOf, ask, requestBytes } from '../http/request.mjs';
import { readUsage } from '../process-usage.mjs';

/** @typedef {import('../http/connection.mjs').Address} Address */
/** @typedef {{ openCpuSeconds: number, openMemoryMb: number, restCpuSeconds: number, restMemoryMb: number }} Cost of one gateway: until all are open, and once they rest, beyond what it had before */
/** @typedef {(of: { address: Address, sessionId: string, key: string }) => Promise<Connection[]>} Reader opens one, and resolves once its stream has sent something */
/** @typedef {{ cost: Pick<Cost, 'openCpuSeconds' | 'openMemoryMb'>, usage: () => import('../process-usage.mjs').Usage, before: number, close: () => Promise<void> }} Opened */

const OPEN = 1_000;
/** Of one to the next, so that heartbeats of any kind of reader are spread alike: together they cost less. */
const EVERY_MS = 12;
const ROUNDS = 3;
/** Behind this the gateway has closed the connections that have had no request since: it keeps them for 72 s. */
const UNTIL_REST_MS = 80_000;
/** Two heartbeats and more. */
const REST_MS = 40_000;
const SETTLE_MS = 3_000;
const MEMORY_EVERY_MS = 1_000;
const BYTES_PER_MB = 1_000_000;
/** Of Chromium, to one server. */
const MAX_CONNECTIONS = 6;
/** In which each gateway writes a CPU profile of the time in which they are opened; absent: none. */
const PROFILES = process.env.BENCH_PROFILE_FOLDER;
/** The profiler reads every function before it begins. */
const PROFILER_START_MS = 1_500;
/** As Chromium sends them with a page's own requests. */
const OF_BROWSER = {
  'sec-ch-ua-platform': '"Linux"',
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
  'sec-ch-ua': '"Chromium";v="140", "Not=A?Brand";v="24"',
  'sec-ch-ua-mobile': '?0',
  'sec-fetch-site': 'same-origin',
  'sec-fetch-mode': 'cors',
  'sec-fetch-dest': 'empty',
  'accept-encoding': 'gzip, deflate, br, zstd',
  'accept-language': 'en-US,en;q=0.9',
};

/**
 * What 1,000 readers of 1,000 sessions cost an agent gateway, by turns: as plain event streams, as chat pages with nothing cached, and as pages whose files a
 * browser has. Each has a new gateway of one cluster, and only it is measured. They are opened one after the other, and rest at the same time.
 *
 * @returns {Promise<Record<'streams' | 'pages' | 'cachedPages', Cost[]>>}
 */
export async function openPages() {
  const { cluster, key } = await startSmallCluster();
  try {
    const first = cluster.processes.find(({ role }) => role === 'agent-gateway')?.url ?? '';
    const sessionIds = await makeSessions(addressOf(first), key);
    /** @type {Awaited<ReturnType<typeof openPages>>} */
    const costs = { streams: [], pages: [], cachedPages: [] };
    for (let round = 0; round < ROUNDS; round += 1) {
      /** @type {{ name: keyof typeof costs, opened: Opened }[]} */
      const all = [];
      for (const [name, reader] of /** @type {const} */ ([
        ['streams', streamReader],
        ['pages', pageReader(true)],
        ['cachedPages', pageReader(false)],
      ])) {
        const gateway = await cluster.add('agent-gateway', profiling(`${name}-${round}`));
        all.push({ name, opened: await openAll({ gateway, sessionIds, key, reader }) });
      }
      const rested = await Promise.all(all.map(({ opened }) => costAtRest(opened)));
      for (const [index, { name, opened }] of all.entries()) {
        costs[name].push({ ...opened.cost, .../** @type {Awaited<ReturnType<typeof costAtRest>>} */ (rested[index]) });
        await opened.close();
      }
    }
    return costs;
  } finally {
    await cluster.kill();
  }
}

/** @param {string} name of its folder @returns {Record<string, string>} */
function profiling(name) {
  if (PROFILES === undefined) return {};
  const folder = join(PROFILES, name);
  mkdirSync(folder, { recursive: true });
  return { NODE_OPTIONS: `--import=${new URL('../profile/profile-on-signal.mjs', import.meta.url).href}`, BENCH_PROFILE_FOLDER: folder };
}

async function startSmallCluster() {
  /** @param {string} path */
  const built = (path) => import(new URL(`../../dist/${path}.js`, import.meta.url).href);
  /** @type {typeof import('../../services/standalone/cluster-components.ts')} */
  const { clusterComponents } = await built('services/standalone/cluster-components');
  /** @type {typeof import('../../bus/nats/server-config.ts')} */
  const { natsServerConfig } = await built('bus/nats/server-config');
  const { describe: _, environment, ...rest } = await clusterComponents(process.env, { isTerminal: false });
  const given = { ...environment, LOG_LEVEL: 'warn', SHUTDOWN_DRAIN_TIMEOUT_SECONDS: '5' };
  const cluster = await startCluster({ counts: {}, ...rest, environment: given, natsConfig: natsServerConfig() });
  const { AGENT_API_KEY: key = '' } = /** @type {Record<string, string | undefined>} */ (given);
  return { cluster, key };
}

/** @param {Address} address @param {string} key @returns {Promise<string[]>} ids */
async function makeSessions(address, key) {
  const connection = await Connection.open(address);
  const request = requestBytes({ address, path: '/sessions', headers: { authorization: `Bearer ${key}` }, body: '{"allow_greeting":false}' });
  /** @type {string[]} */
  const ids = [];
  for (let count = 0; count < OPEN; count += 1) {
    const { status, text } = await ask(connection, request);
    if (status !== 201) throw new Error(`making a session was answered with ${status}: ${text}`);
    ids.push(JSON.parse(text).id);
  }
  connection.leave();
  return ids;
}

/** @param {{ gateway: import('../../scripts/servers/start-cluster.mjs').ClusterProcess, sessionIds: readonly string[], key: string, reader: Reader }} of @returns {Promise<Opened>} */
async function openAll({ gateway, sessionIds, key, reader }) {
  const { pid, url } = gateway;
  const usage = () => /** @type {import('../process-usage.mjs').Usage} */ (readUsage([{ name: 'agent-gateway', pid }])[0]);
  await delay(SETTLE_MS);
  if (PROFILES !== undefined) gateway.signal('SIGUSR2');
  await delay(PROFILES === undefined ? 0 : PROFILER_START_MS);
  const before = usage();
  /** @type {Connection[]} */
  const connections = [];
  const startMs = performance.now();
  for (const [index, sessionId] of sessionIds.entries()) {
    await delay(Math.max(0, startMs + index * EVERY_MS - performance.now()));
    connections.push(...(await reader({ address: addressOf(url ?? ''), sessionId, key })));
  }
  const opened = usage();
  if (PROFILES !== undefined) gateway.signal('SIGUSR2');
  return {
    cost: { openCpuSeconds: opened.cpuSeconds - before.cpuSeconds, openMemoryMb: (opened.memoryBytes - before.memoryBytes) / BYTES_PER_MB },
    usage,
    before: before.memoryBytes,
    close: async () => {
      for (const connection of connections) connection.leave();
      gateway.signal('SIGTERM');
      await gateway.exited;
    },
  };
}

/** @param {Opened} opened @returns {Promise<Pick<Cost, 'restCpuSeconds' | 'restMemoryMb'>>} of `REST_MS` */
async function costAtRest({ usage, before }) {
  await delay(UNTIL_REST_MS);
  const { cpuSeconds } = usage();
  /** @type {number[]} */
  const memories = [];
  for (const untilMs = performance.now() + REST_MS; performance.now() < untilMs; await delay(MEMORY_EVERY_MS)) memories.push(usage().memoryBytes);
  return { restCpuSeconds: usage().cpuSeconds - cpuSeconds, restMemoryMb: ((median(memories) ?? Number.NaN) - before) / BYTES_PER_MB };
}

/** @type {Reader} */
async function streamReader({ address, sessionId, key }) {
  const connection = await Connection.open(address);
  await openStream(connection, address, sessionId, { authorization: `Bearer ${key}` });
  return [connection];
}

/**
 * The requests of a chat page in their order, over as many connections as Chromium opens: one for each file that it loads at a time.
 *
 * @param {boolean} isCold nothing is cached @returns {Reader}
 */
function pageReader(isCold) {
  return async ({ address, sessionId, key }) => {
    const origin = `http://${address.host}:${address.port}`;
    const headers = { ...OF_BROWSER, accept: '*/*', referer: `${origin}/chat?session=${sessionId}`, cookie: `agent_auth=${key}` };
    const get = async (/** @type {Connection} */ connection, /** @type {string} */ path) => {
      const { status } = await ask(connection, requestBytes({ address, method: 'GET', path, headers }));
      if (status !== 200) throw new Error(`${path} was answered with ${status}`);
    };
    const first = await Connection.open(address);
    const page = { ...headers, accept: 'text/html', 'accept-encoding': 'identity', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
    const { text: html } = await ask(first, requestBytes({ address, method: 'GET', path: `/chat?session=${sessionId}`, headers: page }));
    const files = [...html.matchAll(/(?:src|href)="(\/pages\/[^"]+)"/g)].map(([, path]) => path ?? '');
    if (files.length < 3) throw new Error('the chat page names no files');
    const isIcon = (/** @type {string} */ file) => file.endsWith('.svg');
    const loaded = isCold ? files.filter((file) => !isIcon(file)) : [];
    const atATime = Math.min(MAX_CONNECTIONS, Math.max(2, loaded.length));
    const connections = [first, ...(await Promise.all(Array.from({ length: atATime - 1 }, () => Connection.open(address))))];
    const [one = first, other = first] = connections;
    await Promise.all(
      connections.map(async (connection, index) => {
        for (let at = index; at < loaded.length; at += connections.length) await get(connection, loaded[at] ?? '');
      }),
    );
    await Promise.all([get(one, `/sessions/${sessionId}`), get(other, '/sessions?limit=30')]);
    for (const icon of isCold ? files.filter(isIcon) : []) await get(other, icon);
    await openStream(one, address, sessionId, headers);
    return connections;
  };
}

/**
 * @param {Connection} connection @param {Address} address @param {string} sessionId @param {Record<string, string>} headers
 * @returns {Promise<void>} once it has sent something
 */
function openStream(connection, address, sessionId, headers) {
  const request = requestBytes({ address, method: 'GET', path: `/sessions/${sessionId}/events`, headers: { ...headers, accept: 'text/event-stream' } });
  return new Promise((resolve, reject) => {
    connection.send(request, {
      onStatus: (status) => status === 200 || reject(new Error(`a stream was answered with ${status}`)),
      onBody: () => resolve(),
      onEnd: (error) => reject(error ?? new Error('a stream has ended')),
    });
  });
}
