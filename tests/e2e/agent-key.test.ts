import { createHash } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { agentClient } from '../helpers/agent-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';

const TIMEOUT = { timeoutMs: 60_000 };
const SECRET = 'sk-made-over-http-for-the-agent';
const HASH = createHash('sha256').update(SECRET).digest('hex');

let cluster: Cluster;
let database: pg.Client;
const lines: string[] = [];

beforeAll(async () => {
  cluster = await startCluster({ roles: { 'router-gateway': 0 }, env: { LOG_LEVEL: 'info' }, onLine: (line) => lines.push(line) });
  database = new pg.Client({ connectionString: cluster.postgres.url });
  await database.connect();
});
afterAll(() => database.end());

/** The last event of a turn before `ready`. */
async function endOfTurn(): Promise<string> {
  const agent = agentClient(cluster.agentUrls[0] ?? '', cluster.keys.agentKey);
  const { id } = await agent.createSession();
  await agent.postMessage(id, 'How long is the warranty?');
  const log = await agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready');
  const last = log.at(-2);
  return last?.kind === 'status' ? last.status : (last?.kind ?? '');
}

/** The next lines of calls. */
async function keyOfNextCall(): Promise<unknown> {
  const from = lines.length;
  const end = await endOfTurn();
  const line = await eventually(() => lines.slice(from).find((one) => one.includes('"msg":"a router call has ended"')), TIMEOUT);
  return [end, (JSON.parse(line) as { key_id: string }).key_id];
}

it('DESIGN 7: the calls of an agent are made under the key of its manifest, which the router worker knows by its hash', async () => {
  expect(await keyOfNextCall()).toEqual(['assistant_message', 'standalone']);

  // A host whose key is not one of the router's.
  const [host] = cluster.running('actor-host');
  await cluster.add('actor-host', { ROUTER_API_KEY: SECRET });
  host?.signal('SIGTERM');
  await host?.exited;
  expect(await endOfTurn()).toBe('error');
  await eventually(() => lines.some((line) => line.includes("the key of the agent's model calls (llms.api_key) is not known to the router")), TIMEOUT);

  await database.query(`insert into router_keys (id, hash, name, label, made_by) values ('key_1', $1, 'agent', 'sk-made...ent', 'management')`, [HASH]);
  await eventually(async () => JSON.stringify(await keyOfNextCall()) === '["assistant_message","key_1"]', TIMEOUT);

  // Without a notice: the cache bounds how long the key is used.
  await database.query('update router_keys set disabled = true');
  await eventually(async () => (await endOfTurn()) === 'error', TIMEOUT);
  const refused = lines.find((line) => line.includes('(llms.api_key) is disabled')) ?? '{}';
  expect(JSON.parse(refused)).toMatchObject({ level: 'error', key_id: 'key_1', key_label: 'sk-made...ent' });
  expect(lines.filter((line) => line.includes(SECRET))).toEqual([]);
});
