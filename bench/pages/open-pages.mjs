import { setTimeout as delay } from 'node:timers/promises';
import { startCluster } from '../../scripts/servers/start-cluster.mjs';
import { median } from '../figures.mjs';
import { Connection } from '../http/connection.mjs';
import { addressOf, ask, requestBytes } from '../http/request.mjs';
import { readUsage } from '../process-usage.mjs';

/** @typedef {import('../http/connection.mjs').Address} Address */
/** @typedef {{ openCpuSeconds: number, heldCpuSeconds: number, memoryMb: number }} Cost of one gateway: until all are open, while they are held, beyond what it had before */
/** @typedef {(of: { address: Address, sessionId: string, key: string }) => Promise<Connection[]>} Reader opens one, and resolves once its stream has sent something */

const OPEN = 1_000;
const ROUNDS = 2;
/** Two heartbeats and more. */
const HOLD_MS = 40_000;
const SETTLE_MS = 3_000;
const MEMORY_EVERY_MS = 1_000;
const BYTES_PER_MB = 1_000_000;
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
 * What 1,000 readers of 1,000 sessions cost an agent gateway: as plain event streams, and as chat pages with nothing cached, by turns. Each measurement has a
 * new gateway of one cluster, and only it is measured.
 *
 * @returns {Promise<{ streams: Cost[], pages: Cost[] }>}
 */
export async function openPages() {
  const { cluster, key } = await startSmallCluster();
  try {
    const first = cluster.processes.find(({ role }) => role === 'agent-gateway')?.url ?? '';
    const sessionIds = await makeSessions(addressOf(first), key);
    /** @type {{ streams: Cost[], pages: Cost[] }} */
    const costs = { streams: [], pages: [] };
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [name, reader] of /** @type {const} */ ([
        ['streams', streamReader],
        ['pages', pageReader],
      ])) {
        const gateway = await cluster.add('agent-gateway');
        costs[name].push(await costOf({ pid: gateway.pid, address: addressOf(gateway.url ?? ''), sessionIds, key, reader }));
        gateway.signal('SIGTERM');
        await gateway.exited;
      }
    }
    return costs;
  } finally {
    await cluster.kill();
  }
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

/** @param {{ pid: number, address: Address, sessionIds: readonly string[], key: string, reader: Reader }} of @returns {Promise<Cost>} */
async function costOf({ pid, address, sessionIds, key, reader }) {
  const usage = () => /** @type {import('../process-usage.mjs').Usage} */ (readUsage([{ name: 'agent-gateway', pid }])[0]);
  await delay(SETTLE_MS);
  const before = usage();
  /** @type {Connection[]} */
  const connections = [];
  for (const sessionId of sessionIds) connections.push(...(await reader({ address, sessionId, key })));
  const opened = usage();
  /** @type {number[]} */
  const memories = [];
  for (const untilMs = performance.now() + HOLD_MS; performance.now() < untilMs; await delay(MEMORY_EVERY_MS)) memories.push(usage().memoryBytes);
  const held = usage();
  for (const connection of connections) connection.leave();
  return {
    openCpuSeconds: opened.cpuSeconds - before.cpuSeconds,
    heldCpuSeconds: held.cpuSeconds - opened.cpuSeconds,
    memoryMb: ((median(memories) ?? Number.NaN) - before.memoryBytes) / BYTES_PER_MB,
  };
}

/** @type {Reader} */
async function streamReader({ address, sessionId, key }) {
  const connection = await Connection.open(address);
  await openStream(connection, address, sessionId, { authorization: `Bearer ${key}` });
  return [connection];
}

/** The requests of a chat page in their order, on two connections, of which one has its stream in the end. @type {Reader} */
async function pageReader({ address, sessionId, key }) {
  const origin = `http://${address.host}:${address.port}`;
  const headers = { ...OF_BROWSER, accept: '*/*', referer: `${origin}/chat?session=${sessionId}`, cookie: `agent_auth=${key}` };
  const [one, other] = await Promise.all([Connection.open(address), Connection.open(address)]);
  const get = async (/** @type {Connection} */ connection, /** @type {string} */ path) => {
    const { status, text } = await ask(connection, requestBytes({ address, method: 'GET', path, headers }));
    if (status !== 200) throw new Error(`${path} was answered with ${status}`);
    return text;
  };
  const page = { ...headers, accept: 'text/html', 'accept-encoding': 'identity', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
  const { text: html } = await ask(one, requestBytes({ address, method: 'GET', path: `/chat?session=${sessionId}`, headers: page }));
  const files = [...html.matchAll(/(?:src|href)="(\/pages\/[^"]+)"/g)].map(([, path]) => path ?? '');
  if (files.length < 3) throw new Error('the chat page names no files');
  for (const file of files) await get(other, file);
  await Promise.all([get(one, `/sessions/${sessionId}`), get(other, '/sessions?limit=30')]);
  await openStream(one, address, sessionId, headers);
  return [one, other];
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
