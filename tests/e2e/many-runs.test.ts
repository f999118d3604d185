import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type HttpDouble, openHttpDouble } from '../../services/effect-worker/test-support/http-double.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';

const RUNS = 300;
const ROUTINE = 'triage-warranty-claim';
const CLAIM = { claim_id: 'C-1', model: 'Acme Duo', delivered_on: '2026-03-01', description: 'The pump is loud.' };
const WAIT = { timeoutMs: 240_000 };

interface Posted {
  body: string;
  accepted: boolean;
}

let cluster: Cluster;
let database: pg.Pool;
let receiver: HttpDouble;
/** By run. */
const posts = new Map<string, Posted[]>();

/** Every third post fails: in turn by a status and by a connection that is closed without an answer. */
beforeAll(async () => {
  let count = 0;
  receiver = await openHttpDouble(({ headers, body }, response) => {
    const run = String(headers['x-run-id']);
    count += 1;
    const accepted = count % 3 !== 0;
    posts.set(run, [...(posts.get(run) ?? []), { body: body.toString(), accepted }]);
    if (accepted) response.writeHead(204).end();
    else if (count % 2 === 0) response.writeHead(500).end();
    else response.socket?.destroy();
  });
  cluster = await startCluster({
    roles: { 'router-gateway': 0, 'agent-gateway': 2, 'actor-host': 2, 'router-worker': 2, 'effect-worker': 2 },
    env: { OUTBOUND_ALLOW_HOSTS: `127.0.0.1:${receiver.port}`, AUTONOMOUS_CALLBACK_MAX_RETRIES: '12', LOG_LEVEL: 'warn' },
  });
  database = new pg.Pool({ connectionString: cluster.postgres.url, max: 2 });
}, 180_000);
afterAll(async () => {
  await database.end();
  await cluster.stop();
  await receiver.close();
}, 120_000);

/** As a caller does it: again with the same key when it is refused for a while. @returns the run's id */
async function trigger(number: number): Promise<string> {
  const url = cluster.agentUrls[number % cluster.agentUrls.length] ?? '';
  const headers = { authorization: `Bearer ${cluster.keys.agentKey}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ callback_url: `http://127.0.0.1:${receiver.port}/runs`, input: CLAIM, idempotency_key: `run-${number}` });
  return eventually(async () => {
    const response = await fetch(`${url}/routines/${ROUTINE}/trigger`, { method: 'POST', headers, body, signal: AbortSignal.timeout(60_000) });
    const answer = (await response.json()) as { run_id: string };
    if (response.status !== 202 && response.status !== 409) throw new Error(`answered ${response.status}: ${JSON.stringify(answer)}`);
    return answer.run_id;
  }, WAIT);
}

it('DESIGN 5: 300 runs at once settle once each, and each is called back at a receiver that fails every third time', async () => {
  const ids = await Promise.all(Array.from({ length: RUNS }, (_, number) => trigger(number)));
  await eventually(async () => (await database.query(`select 1 from deliveries where state = 'delivered'`)).rowCount === RUNS, WAIT);
  const { rows } = await database.query<{ id: string; state: string; deliveries: number }>(
    'select r.id, r.state, count(d.id)::int as deliveries from runs r left join deliveries d on d.run_id = r.id group by r.id, r.state',
  );

  expect(new Set(ids).size).toBe(RUNS);
  expect(rows.map(({ state }) => state)).toEqual(ids.map(() => 'succeeded'));
  expect(rows.filter(({ deliveries }) => deliveries !== 1)).toEqual([]);
  for (const id of ids) {
    const of = posts.get(id) ?? [];
    expect(new Set(of.map(({ body }) => body)).size).toBe(1);
    expect(JSON.parse(of[0]?.body ?? '{}')).toMatchObject({ run_id: id, status: 'succeeded' });
    // No process has died, so nothing is posted again behind the answer that accepts it.
    expect(of.filter((post) => post.accepted)).toHaveLength(1);
    expect(of.at(-1)?.accepted).toBe(true);
  }
  expect([...posts.values()].filter((of) => of.length > 1).length).toBeGreaterThan(RUNS / 10);
  expect([...posts.keys()].sort()).toEqual([...ids].sort());
}, 480_000);
