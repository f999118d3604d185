import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import pg from 'pg';
import { z } from 'zod';
import { inboxPrefixOf } from '../../bus/nats/connection/dial.ts';
import { streams } from '../../bus/nats/streams.ts';
import { workQueues } from '../../bus/work-queues.ts';
import type { ClusterProcess } from '../../scripts/servers/start-cluster.mjs';
import { nanoOfUsd, usdOfNano } from '../../shared/credit/nano-usd.ts';
import { ROUTERS } from '../helpers/deployment-under-test.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { openScriptedUpstream, type ScriptedUpstream } from '../upstreams/scripted-upstream.ts';

/** A key that was made over HTTP. */
export interface MadeKey {
  /** As in calls, reservations and the ledger. */
  id: string;
  secret: string;
  /** Null: none. */
  limitNano: number | null;
}

/** Two router gateways and two router workers on real stores, a provider with prices, and keys with and without a limit. */
export interface BillingEnvironment {
  cluster: Cluster;
  database: pg.Pool;
  upstream: ScriptedUpstream;
  /** In [0, 1), from the seed. */
  random(): number;
  nextRouterUrl(): string;
  /** Processes that received a signal, or have a fail point. */
  ended: Set<ClusterProcess>;
  /** Resolves when it has ended. @throws when it was drained and exited with a failure */
  end(one: ClusterProcess, signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  add(role: 'router-gateway' | 'router-worker' | 'router', env?: Record<string, string>): Promise<ClusterProcess>;
  makeKey(limitNano: number | null): Promise<MadeKey>;
  /** What GET /key says that the key has spent, in billionths of a US dollar. */
  usageOf(key: MadeKey): Promise<number>;
  /** Queued calls that wait or run. */
  queued(): Promise<number>;
  close(): Promise<void>;
}

/** Prices in US dollars: a fee per call, and little per token, so that the worst case of a call is a little more than what it costs. */
const PRICES = { prompt: '1', completion: '2', request: '0.001' };
/** Of a call by `billed-call.ts` whose provider counts it. */
export const COST_NANO = 1_022_000;
/** Suffices for ten calls and for no eleventh, however their worst cases follow their costs. */
export const LIMIT_OF_TEN_NANO = 11_000_000;
/** Short, so that a call that no worker takes any more ends within a case. */
export const TOTAL_MS = 30_000;
const SILENCE_MS = 15_000;
/** Behind `test/`: its endpoints in the order of its calls, of which a second one is asked when the first is late. */
export const HEDGED_MODEL = 'east-west';
const DRAIN_SECONDS = '20';
/** A process gives up when it has not reached the stores for 10 s, as on a machine that is too busy. */
const MAX_STARTS = 4;

const made = z.object({ data: z.looseObject({ hash: z.string() }), key: z.string() });
const calling = z.object({ data: z.looseObject({ usage: z.number() }) });

export async function openBillingEnvironment(random: () => number): Promise<BillingEnvironment> {
  const upstream = await openScriptedUpstream();
  const config = {
    providers: ['first', 'east', 'west'].map((slug) => ({ slug, name: slug, kind: 'openai-compatible', base_url: upstream.baseUrl(slug) })),
    models: [
      { id: 'test/first', endpoints: [{ provider: 'first', upstream_model: 'first', prices: PRICES }] },
      {
        id: `test/${HEDGED_MODEL}`,
        hedge: true,
        endpoints: HEDGED_MODEL.split('-').map((provider) => ({ provider, upstream_model: provider, prices: PRICES })),
      },
    ],
    keys: [
      { id: 'one', key: '${ROUTER_API_KEY}' },
      { id: 'management', key: '${ROUTER_MANAGEMENT_KEY}', management: true },
    ],
    timeouts: { connect_ms: 10_000, first_token_ms: SILENCE_MS, idle_ms: SILENCE_MS, total_ms: TOTAL_MS },
  };
  const path = join(await freeFolder('billing'), 'router.json');
  await writeFile(path, JSON.stringify(config));
  const cluster = await startCluster({ roles: ROUTERS, env: { ROUTER_CONFIG: path, LOG_LEVEL: 'warn', SHUTDOWN_DRAIN_TIMEOUT_SECONDS: DRAIN_SECONDS } });
  const database = new pg.Pool({ connectionString: cluster.postgres.url, max: 4 });
  // It loses the server too; a query in flight then fails by itself.
  database.on('error', () => {});
  const ended = new Set<ClusterProcess>();
  let turn = 0;
  const nextRouterUrl = () => {
    const urls = cluster.routerUrls;
    turn += 1;
    const url = urls[turn % urls.length];
    if (url === undefined) throw new Error('there is no gateway left');
    return url;
  };
  const sent = async (method: 'GET' | 'POST', path: string, key: string, body?: object): Promise<unknown> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const response = await fetch(`${nextRouterUrl()}/api/v1${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    if (!response.ok) throw new Error(`${method} ${path} was answered ${response.status}: ${await response.text()}`);
    return response.json();
  };
  return {
    cluster,
    database,
    upstream,
    random,
    nextRouterUrl,
    ended,
    end: async (one, signal) => {
      ended.add(one);
      one.signal(signal);
      const exit = await one.exited;
      if (signal === 'SIGTERM' && exit.code !== 0)
        throw new Error(`${one.role}-${one.index} ended with ${exit.signal ?? exit.code}; it printed:\n${one.output()}`);
    },
    add: async (role, env = {}) => {
      for (let starts = 1; ; starts += 1) {
        try {
          return await cluster.add(role, env);
        } catch (error) {
          const gaveUp = error instanceof Error && error.message.includes('before it was ready');
          if (!gaveUp || starts >= MAX_STARTS) throw error;
        }
      }
    },
    makeKey: async (limitNano) => {
      const fields = { name: 'chaos', limit: limitNano === null ? null : usdOfNano(limitNano) };
      const { data, key } = made.parse(await sent('POST', '/keys', cluster.keys.managementKey, fields));
      const { rows } = await database.query<{ id: string }>('select id from router_keys where hash = $1', [data.hash]);
      return { id: rows[0]?.id ?? '', secret: key, limitNano };
    },
    usageOf: async ({ secret }) => nanoOfUsd(calling.parse(await sent('GET', '/key', secret)).data.usage),
    queued: async () => {
      const { NATS_URL: servers = '', NATS_PASSWORD: pass = '' } = cluster.environmentOf('router-gateway');
      const connection = await connect({ servers, user: 'router-gateway', pass, inboxPrefix: inboxPrefixOf('router-gateway'), reconnect: false });
      try {
        // Of the consumer: a broker that was killed may keep messages that were acknowledged.
        const manager = await jetstreamManager(connection, { checkAPI: false });
        const { num_pending: waiting, num_ack_pending: running } = await manager.consumers.info(streams.work.name, workQueues['router.call'].consumer);
        return waiting + running;
      } finally {
        await connection.close();
      }
    },
    close: async () => {
      await database.end();
      await cluster.stop();
      await upstream.close();
    },
  };
}
