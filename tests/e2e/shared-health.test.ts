import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ClusterProcess } from '../../scripts/servers/start-cluster.mjs';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from '../upstreams/openai-upstream.ts';

const WORKERS = 3;
const NONE = 0;
/** One call each at a time. */
const CLIENTS = 3;
/** While the upstream fails. Half of them draw it. */
const CALLS_WHILE_DOWN = 120;
/** For a breaker's time on a busy machine. */
const LONG = { timeoutMs: 120_000 };

let east: OpenAiUpstream;
let west: OpenAiUpstream;
let cluster: Cluster;

beforeAll(async () => {
  [east, west] = await Promise.all([openOpenAiUpstream(), openOpenAiUpstream()]);
  const path = join(await freeFolder('shared-health'), 'router.json');
  const prices = { prompt: '1', completion: '1' };
  const config = {
    providers: Object.entries({ east, west }).map(([slug, { baseUrl }]) => ({ slug, kind: 'openai-compatible', base_url: baseUrl })),
    models: [{ id: 'm/a', endpoints: ['east', 'west'].map((provider) => ({ provider, upstream_model: 'a', prices })) }],
    keys: [{ id: 'one', key: '${ROUTER_API_KEY}' }],
  };
  await writeFile(path, JSON.stringify(config));
  const roles = { 'router-gateway': 1, 'router-worker': WORKERS, 'agent-gateway': NONE, 'actor-host': NONE, 'effect-worker': NONE };
  cluster = await startCluster({ roles, env: { ROUTER_CONFIG: path } });
});
afterAll(async () => {
  await cluster?.stop();
  await Promise.all([east.close(), west.close()]);
});

/** Attempts of a worker at the upstream that fails for a while. */
async function attemptsOf({ managementUrl }: ClusterProcess): Promise<{ ok: number; failed: number }> {
  const text = await (await fetch(`${managementUrl}/metrics`)).text();
  const counted = { ok: 0, failed: 0 };
  for (const [, outcome, count] of text.matchAll(/^switchyard_upstream_attempts_total\{model="m\/a",provider="east",outcome="([^"]+)"\} (\d+)$/gm)) {
    counted[outcome === 'ok' ? 'ok' : 'failed'] += Number(count);
  }
  return counted;
}

const attemptsOfAll = () => Promise.all(cluster.running('router-worker').map(attemptsOf));

/** As workers have written it to Redis: below 0 it is asked last, or fails. */
async function sharedStatusOfEast(): Promise<number | undefined> {
  const response = await fetch(`${cluster.routerUrls[0]}/api/v1/models/m/a/endpoints`, { headers: { authorization: `Bearer ${cluster.keys.routerKey}` } });
  const { data } = (await response.json()) as { data: { endpoints: { tag: string; status: number }[] } };
  return data.endpoints.find(({ tag }) => tag === 'east')?.status;
}

/** Clients that call until they are stopped. */
function load() {
  const statuses = new Map<number, number>();
  let made = 0;
  let isOver = false;
  const clients = Array.from({ length: CLIENTS }, async () => {
    while (!isOver) {
      const response = await fetch(`${cluster.routerUrls[0]}/api/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${cluster.keys.routerKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }] }),
      });
      await response.text();
      made += 1;
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    }
  });
  return {
    more: async (calls: number) => {
      const until = made + calls;
      await eventually(() => made >= until, LONG);
    },
    end: async () => {
      isOver = true;
      await Promise.all(clients);
      return [...statuses.keys()];
    },
  };
}

it('DESIGN 8: three worker processes leave an upstream that fails after ten failures each at most, share that through Redis, and all take it back, with Redis killed meanwhile', async () => {
  const clients = load();
  await eventually(async () => (await attemptsOfAll()).every(({ ok }) => ok > 0), LONG);

  east.answer({ refuse: { status: 503 } });
  await clients.more(CALLS_WHILE_DOWN / 2);
  await eventually(async () => ((await sharedStatusOfEast()) ?? 0) < 0, LONG);
  // It knows what the others have seen once it has read their reports.
  await cluster.add('router-worker');
  await cluster.redis.kill();
  await clients.more(CALLS_WHILE_DOWN / 2);
  await cluster.redis.start();
  const whileDown = await attemptsOfAll();
  expect(Math.max(...whileDown.map(({ failed }) => failed))).toBeLessThanOrEqual(10);
  expect(whileDown.reduce((sum, { failed }) => sum + failed, 0)).toBeGreaterThan(0);

  east.answer();
  await eventually(async () => (await attemptsOfAll()).every(({ ok }, worker) => ok > (whileDown[worker]?.ok ?? 0)), LONG);
  expect(await clients.end()).toEqual([200]);
  console.info(`failures by worker: ${whileDown.map(({ failed }) => failed).join()}`);
});
