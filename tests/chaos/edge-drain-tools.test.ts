import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type CallbackReceiver, openCallbackReceiver } from '../helpers/callback-receiver.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { ROUTINE, writeAgentFiles } from './agent-files.ts';
import { type CountingTools, openCountingTools } from './counting-tools.ts';
import { type ModelUpstream, openModelUpstream } from './model-upstream.ts';

const DRAIN_SECONDS = 4;
const TIMEOUT_MS = 60_000;
const CLEAN = { code: 0, signal: null };

let cluster: Cluster;
let receiver: CallbackReceiver;
let tools: CountingTools;
let model: ModelUpstream;
let database: pg.Pool;
/** The tools answer no call while it is set. */
let held: Promise<void> | null = null;
/** The model answers no request while it is set. */
let heldModel: Promise<void> | null = null;

beforeAll(async () => {
  [receiver, tools, model] = await Promise.all([
    openCallbackReceiver(),
    openCountingTools(async () => held ?? undefined),
    openModelUpstream(async () => heldModel ?? undefined),
  ]);
  cluster = await startCluster({
    roles: { 'agent-gateway': 1, 'actor-host': 1, 'router-worker': 1, 'effect-worker': 1 },
    env: {
      ...(await writeAgentFiles(tools.port, model.baseUrl, model.baseUrl)),
      PLATFORM_PUBLIC_KEY: 'pk-drain',
      PLATFORM_SECRET_KEY: 'sk-drain',
      LOG_LEVEL: 'warn',
      OUTBOUND_ALLOW_HOSTS: receiver.host,
      SHUTDOWN_DRAIN_TIMEOUT_SECONDS: String(DRAIN_SECONDS),
    },
  });
  database = new pg.Pool({ connectionString: cluster.postgres.url, max: 1 });
});
afterAll(async () => {
  await database?.end();
  await cluster?.stop();
  await Promise.all([receiver.close(), tools.close(), model.close()]);
});

it('a draining effect worker waits for the tool calls in flight, each of which is made once', async () => {
  const run = await runWithToolsInHand('one');
  const exited = stopWorker();
  run.answerTools();

  expect(await exited).toEqual(CLEAN);
  await cluster.add('effect-worker');
  expect(await run.output()).toEqual({ booked: 'booked one', looked: 'looked one' });
  expect([tools.booked.get('one'), tools.looked.get('one')]).toEqual([1, 1]);
});

it('past the drain it abandons them: a repeatable call is repeated by another worker, of a call that may happen once the run gets outcome_unknown', async () => {
  const run = await runWithToolsInHand('two');
  const exited = stopWorker();
  await cluster.add('effect-worker');

  expect(await exited).toEqual(CLEAN);
  await eventually(() => (tools.looked.get('two') ?? 0) > 1, { timeoutMs: TIMEOUT_MS });
  run.answerTools();
  expect(await run.output()).toEqual({ booked: expect.stringContaining('outcome_unknown'), looked: 'looked two' });
  expect([tools.booked.get('two'), tools.looked.get('two')]).toEqual([1, 2]);
});

describe('a run that is cancelled', () => {
  const CANCELLED = { status: 'failed', output: null, error: { code: 'engine_error', details: { reason: 'cancelled' } } };

  it('DESIGN 5: settles when the call that a worker has claimed has ended', async () => {
    const run = await runWithToolsInHand('three');
    await run.cancel();
    expect(await run.state()).toBe('running');

    run.answerTools();
    expect(await run.callback()).toMatchObject(CANCELLED);
    const { rows } = await database.query('select withdrawn from claims where starts_with(effect_id, $1) order by withdrawn', [run.id]);
    expect(rows, 'of the call that may happen once, and of the one that was withdrawn').toEqual([{ withdrawn: false }, { withdrawn: true }]);
    expect([tools.booked.get('three'), tools.looked.get('three')]).toEqual([1, 1]);
  });

  it('DESIGN 5: while its calls wait in the queue settles at once, and a worker that starts then makes none of them', async () => {
    const answerModel = holdModel();
    const asked = model.asked;
    const run = await begin('four');
    await eventually(() => model.asked > asked, { timeoutMs: TIMEOUT_MS });
    expect(await stopWorker()).toEqual(CLEAN);
    answerModel();
    await eventually(() => areQueued(run.id), { timeoutMs: TIMEOUT_MS });
    await run.cancel();
    await eventually(async () => (await run.state()) === 'failed', { timeoutMs: TIMEOUT_MS });

    await cluster.add('effect-worker');
    expect(await run.callback()).toMatchObject(CANCELLED);
    // Its calls stand behind those on the queue.
    expect(await (await begin('five')).output()).toEqual({ booked: 'booked five', looked: 'looked five' });
    expect([tools.booked.get('four'), tools.looked.get('four')]).toEqual([undefined, undefined]);
  });
});

/** Begins a run whose two tool calls are in flight. */
async function runWithToolsInHand(key: string) {
  let answer = () => {};
  held = new Promise((resolve) => {
    answer = resolve;
  });
  const run = await begin(key);
  await eventually(() => tools.booked.get(key) === 1 && tools.looked.get(key) === 1, { timeoutMs: TIMEOUT_MS });
  return {
    ...run,
    answerTools: () => {
      held = null;
      answer();
    },
  };
}

async function begin(key: string) {
  const callback = receiver.address();
  const ask = async (method: 'GET' | 'POST', path: string, body?: object) => {
    const headers = { authorization: `Bearer ${cluster.keys.agentKey}`, 'content-type': 'application/json' };
    const response = await fetch(`${cluster.agentUrls[0]}${path}`, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
    const text = await response.text();
    expect(response.status, text).toBe(method === 'GET' ? 200 : 202);
    return record.parse(JSON.parse(text));
  };
  const { run_id: id } = await ask('POST', `/routines/${ROUTINE}/trigger`, { input: { key }, callback_url: callback.url });
  const received = async () => {
    await eventually(() => callback.received.length > 0, { timeoutMs: TIMEOUT_MS });
    return JSON.parse(String(callback.received[0]?.body)) as unknown;
  };
  return {
    id,
    cancel: () => ask('POST', `/runs/${id}/cancel`, {}),
    state: async () => (await ask('GET', `/runs/${id}`)).status,
    callback: received,
    /** Of its callback. */
    output: async () => payload.parse(await received()).output,
  };
}

const record = z.looseObject({ run_id: z.string(), status: z.string() });
const payload = z.looseObject({ output: z.record(z.string(), z.string()) });

/** @returns lets it answer */
function holdModel(): () => void {
  let answer = () => {};
  heldModel = new Promise((resolve) => {
    answer = () => {
      heldModel = null;
      resolve();
    };
  });
  return answer;
}

/** Whether both tool calls of a run are on the queue. */
async function areQueued(runId: string): Promise<boolean> {
  const { rows } = await database.query<{ calls: number; unpublished: number }>(
    `select count(*)::int as calls, count(*) filter (where unpublished)::int as unpublished from effects where turn_id = $1 and kind = 'tool-call' and state = 'open'`,
    [runId],
  );
  return rows[0]?.calls === 2 && rows[0]?.unpublished === 0;
}

async function stopWorker() {
  const [worker] = cluster.running('effect-worker');
  if (worker === undefined) throw new Error('there is no effect worker');
  worker.signal('SIGTERM');
  return worker.exited;
}
