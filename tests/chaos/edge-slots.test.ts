import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { readStream } from '../helpers/read-stream.ts';
import { LONGER_THAN_A_TEST_MS, openScriptedProviders, plannedCall, requestFor, type ScriptedProviders } from '../helpers/scripted-deployment.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { type Answered, type LoadClient, loadClient } from './edge-load.ts';
import { withCallSlots } from './patched-copy.ts';

const SLOTS = 16;
/** More than a gateway admits to a queue that no worker takes from (FREE_WAITING in shared/admission.ts). */
const BEHIND_THEM = 100;
/** A gateway samples the queue twice before it refuses, half a second apart. */
const ASKED_EVERY_MS = 250;
const REFUSED_WITHIN_MS = 60_000;

let providers: ScriptedProviders;
let cluster: Cluster;
let client: LoadClient;

beforeAll(async () => {
  providers = await openScriptedProviders({ silenceMs: LONGER_THAN_A_TEST_MS });
  const roles = { 'router-gateway': 1, 'agent-gateway': 0, 'actor-host': 0, 'router-worker': 0, 'effect-worker': 0 };
  cluster = await startCluster({ roles, env: { ...providers.settings, LOG_LEVEL: 'warn' } });
  await cluster.add('router-worker', {}, await withCallSlots(SLOTS));
  client = loadClient(LONGER_THAN_A_TEST_MS);
});
afterAll(async () => {
  client?.close();
  await cluster?.stop();
  await providers?.close();
});

it('refuses completions with a time to come again while all slots of the workers are taken, and ends each that it has accepted', async () => {
  const plan = plannedCall({ first: ['hold', { say: 'whole' }, 'finish', 'usage', 'done', 'end'] });
  const answers: Answered[] = [];
  const ask = async () => {
    const headers = { authorization: `Bearer ${cluster.keys.routerKey}` };
    answers.push(await client.send('POST', `${cluster.routerUrls[0]}/api/v1/chat/completions`, requestFor(plan, 'first', true), headers));
  };
  const calls = Array.from({ length: SLOTS }, ask);
  await eventually(() => providers.upstream.calls(plan.name).filter(({ isOpen }) => isOpen).length === SLOTS);
  calls.push(...Array.from({ length: BEHIND_THEM }, ask));
  const isRefused = () => {
    if (answers.length > 0) return true;
    calls.push(ask());
    return false;
  };
  await eventually(isRefused, { timeoutMs: REFUSED_WITHIN_MS, lookAgainMs: ASKED_EVERY_MS });
  // Nothing has ended before the slots are free, so what is answered is refused.
  const refused = [...answers];
  providers.upstream.release(plan.name);
  await Promise.all(calls);
  const accepted = answers.filter(({ status }) => status === 200).map(({ text }) => readStream(text));
  const others = answers.filter(({ status }) => status !== 200);

  for (const { status, retryAfter } of [...refused, ...others]) {
    expect(status).toBe(503);
    expect(Number(retryAfter)).toBeGreaterThanOrEqual(1);
  }
  expect(accepted.length).toBeGreaterThanOrEqual(SLOTS);
  for (const { text, ends, behindEnd } of accepted) expect({ text, ends, behindEnd }).toEqual({ text: 'whole', ends: ['done'], behindEnd: 0 });
  // What has waited is done, so there is capacity again.
  await eventually(async () => {
    await ask();
    return answers.at(-1)?.status === 200;
  });
});
