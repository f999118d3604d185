import pg from 'pg';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import type { ClusterProcess } from '../../scripts/servers/start-cluster.mjs';
import { type FreshDatabase, freshDatabase } from '../../shared/storage/conformance/fresh-database.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';

const TIMEOUT = { timeoutMs: 60_000 };
const NONE = 0;

let cluster: Cluster;
let fresh: FreshDatabase;

beforeAll(async () => {
  cluster = await startCluster({ roles: { 'router-gateway': NONE, 'agent-gateway': NONE, 'actor-host': NONE, 'router-worker': 1, 'effect-worker': NONE } });
  fresh = await freshDatabase(cluster.postgres.url);
});

async function statusFor(gateway: ClusterProcess, key: string): Promise<number> {
  const response = await fetch(`${gateway.url}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello!' }] }),
  });
  await response.text();
  return response.status;
}

async function readiness({ managementUrl }: ClusterProcess): Promise<unknown> {
  const response = await fetch(`${managementUrl}/ready`);
  return [response.status, ((await response.json()) as { checks: unknown }).checks];
}

async function rowsOf(text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: fresh.url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query<object>(text)).rows;
  } finally {
    await client.end();
  }
}

it('DESIGN 3: a router gateway starts without PostgreSQL and Redis, serves the keys of its file, and those of rows once the database is back', async () => {
  await Promise.all([cluster.postgres.kill(), cluster.redis.kill()]);
  const gateway = await cluster.add('router-gateway', { DATABASE_URL: fresh.url, LOG_LEVEL: 'info' });
  onTestFinished(() => void gateway.signal('SIGKILL'));

  expect(await readiness(gateway)).toEqual([200, { bus: 'ok', database: 'unavailable', cache: 'unavailable' }]);
  expect(await statusFor(gateway, cluster.keys.routerKey)).toBe(200);
  expect(await statusFor(gateway, 'sk-made-over-http')).toBe(503);

  await Promise.all([cluster.postgres.start(), cluster.redis.start()]);
  await eventually(() => gateway.output().includes('the schema of the database was migrated'), TIMEOUT);
  await eventually(async () => JSON.stringify(await readiness(gateway)).includes('"database":"ok","cache":"ok"'), TIMEOUT);

  await rowsOf(`insert into router_keys (id, hash, name, label, made_by)
    values ('key_1', encode(sha256('sk-made-over-http'), 'hex'), 'made over HTTP', 'sk-made-...ttp', 'management')`);
  // A look-up that was late is not repeated for a second.
  await eventually(async () => (await statusFor(gateway, 'sk-made-over-http')) === 200, TIMEOUT);
  expect(await statusFor(gateway, 'sk-unknown')).toBe(401);
  expect(await statusFor(gateway, cluster.keys.routerKey)).toBe(200);
  gateway.signal('SIGTERM');
  expect(await gateway.exited).toEqual({ code: 0, signal: null });
});

it('without the settings of both stores a router gateway knows the keys of its file alone', async () => {
  const gateway = await cluster.add('router-gateway', { DATABASE_URL: '', REDIS_URL: '' });
  onTestFinished(() => void gateway.signal('SIGKILL'));

  expect(await readiness(gateway)).toEqual([200, { bus: 'ok' }]);
  expect(await statusFor(gateway, cluster.keys.routerKey)).toBe(200);
  expect(await statusFor(gateway, 'sk-unknown')).toBe(401);
});
