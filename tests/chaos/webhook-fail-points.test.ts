import { createHmac } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eventually } from '../helpers/eventually.ts';
import { isQuiet } from '../helpers/session-logs.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { casesOfToday } from '../helpers/tier.ts';
import { WEBHOOK, WEBHOOK_SECRET, writeAgentFiles } from './agent-files.ts';
import { type CountingTools, openCountingTools } from './counting-tools.ts';
import { type ModelUpstream, openModelUpstream } from './model-upstream.ts';
import { webhookPoints } from './webhook-load.ts';

const TIMEOUT = { timeoutMs: 180_000 };

let cluster: Cluster;
let tools: CountingTools;
let model: ModelUpstream;
let database: pg.Pool;

beforeAll(async () => {
  [tools, model] = await Promise.all([openCountingTools(), openModelUpstream()]);
  cluster = await startCluster({
    roles: { 'router-gateway': 0, 'agent-gateway': 1, 'actor-host': 1, 'router-worker': 1, 'effect-worker': 1 },
    env: { ...(await writeAgentFiles(tools.port, model.baseUrl, model.baseUrl)), WEBHOOK_SECRET, LOG_LEVEL: 'warn' },
  });
  database = new pg.Pool({ connectionString: cluster.postgres.url, max: 2 });
}, 180_000);

afterAll(async () => {
  await database.end();
  await cluster.stop();
  await Promise.all([tools.close(), model.close()]);
});

/** @returns status and body; null when the connection was lost */
async function post(agentUrl: string, key: string): Promise<{ status: number; body: unknown } | null> {
  const body = JSON.stringify({ key, noted: true });
  const headers = { 'x-signature': createHmac('sha256', WEBHOOK_SECRET).update(body).digest('hex') };
  try {
    const response = await fetch(`${agentUrl}/webhooks/${WEBHOOK}`, { method: 'POST', headers, body, signal: AbortSignal.timeout(120_000) });
    return { status: response.status, body: await response.json() };
  } catch (error) {
    if (error instanceof DOMException) throw error;
    return null;
  }
}

/** Its runs, once all are settled. */
async function runsOf(key: string): Promise<{ routine_id: string; state: string }[]> {
  await eventually(() => isQuiet(database), TIMEOUT);
  const { rows } = await database.query<{ routine_id: string; state: string }>(
    `select routine_id, state from runs where input->>'key' = $1 order by routine_id`,
    [key],
  );
  return rows;
}

const fannedOut = z.object({ runs: z.array(z.object({ run_id: z.string() })) });

function idsIn(answer: { body: unknown } | null): string[] {
  return fannedOut.parse(answer?.body).runs.map(({ run_id }) => run_id);
}

const ONE_EACH = [
  { routine_id: 'book-it', state: 'succeeded' },
  { routine_id: 'note-it', state: 'succeeded' },
];

/** As the model reads it: letters, digits and hyphens. */
function keyOf(what: string, point: string): string {
  return `${what}-${point.replace('.', '-')}`;
}

async function armed(failPoint: string) {
  const before = new Set(cluster.agentUrls);
  const gateway = await cluster.add('agent-gateway', { FAIL_POINT: failPoint });
  const [first = ''] = before;
  return { first, gateway, second: cluster.agentUrls.find((url) => !before.has(url)) ?? '' };
}

describe.each(casesOfToday(webhookPoints))('a gateway at %s of a delivery', (point) => {
  it('that is killed there starts its runs once, when the delivery is repeated', async () => {
    const { first, gateway, second } = await armed(`${point}:kill`);
    const key = keyOf('killed', point);

    expect(await post(second, key)).toBeNull();
    expect(await gateway.exited).toEqual({ code: null, signal: 'SIGKILL' });
    expect(await post(first, key)).toMatchObject({ status: 200, body: { matched: ['book-it', 'note-it'] } });

    expect(await runsOf(key)).toEqual(ONE_EACH);
    expect(tools.booked.get(key)).toBe(1);
  }, 480_000);

  it('that is paused there while the delivery is repeated elsewhere starts none of its own', async () => {
    const { first, gateway, second } = await armed(`${point}:stop`);
    const key = keyOf('paused', point);

    const paused = post(second, key);
    await eventually(() => gateway.output().includes(`fail point ${point}: SIGSTOP`), TIMEOUT);
    const repeat = await post(first, key);
    expect(await runsOf(key)).toEqual(ONE_EACH);
    gateway.signal('SIGCONT');
    const late = await paused;

    expect([repeat?.status, late?.status]).toEqual([200, 200]);
    expect(idsIn(late)).toEqual(idsIn(repeat));
    expect(await runsOf(key)).toEqual(ONE_EACH);
    expect(tools.booked.get(key)).toBe(1);
    gateway.signal('SIGTERM');
    await gateway.exited;
  }, 480_000);
});
