import { afterAll, beforeAll, expect, it } from 'vitest';
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
/** The tools answer no call while it is set. */
let held: Promise<void> | null = null;

beforeAll(async () => {
  [receiver, tools, model] = await Promise.all([openCallbackReceiver(), openCountingTools(async () => held ?? undefined), openModelUpstream()]);
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
});
afterAll(async () => {
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

/** Begins a run whose two tool calls are in flight. */
async function runWithToolsInHand(key: string) {
  let answer = () => {};
  held = new Promise((resolve) => {
    answer = resolve;
  });
  const callback = receiver.address();
  const response = await fetch(`${cluster.agentUrls[0]}/routines/${ROUTINE}/trigger`, {
    method: 'POST',
    headers: { authorization: `Bearer ${cluster.keys.agentKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ input: { key }, callback_url: callback.url }),
  });
  expect(response.status, await response.text()).toBe(202);
  await eventually(() => tools.booked.get(key) === 1 && tools.looked.get(key) === 1, { timeoutMs: TIMEOUT_MS });
  return {
    answerTools: () => {
      held = null;
      answer();
    },
    /** The body of its callback. */
    output: async () => {
      await eventually(() => callback.received.length > 0, { timeoutMs: TIMEOUT_MS });
      return payload.parse(JSON.parse(String(callback.received[0]?.body))).output;
    },
  };
}

const payload = z.looseObject({ output: z.record(z.string(), z.string()) });

async function stopWorker() {
  const [worker] = cluster.running('effect-worker');
  if (worker === undefined) throw new Error('there is no effect worker');
  worker.signal('SIGTERM');
  return worker.exited;
}
