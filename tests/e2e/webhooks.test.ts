import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunEnvelope, RunRecord } from '../../shared/contracts/agent/run.ts';
import { type DeploymentUnderTest, shapes } from '../helpers/deployment-under-test.ts';
import { eventually } from '../helpers/eventually.ts';
import { startStandalone } from '../helpers/start-standalone.ts';
import { casesOfToday } from '../helpers/tier.ts';
import { deliver, documentedWebhook, quickStartAgent, webhookAgent } from '../helpers/webhook-agent.ts';

const run = promisify(execFile);
const TIMEOUT = { timeoutMs: 60_000 };
/** Of a webhook of the manifest. */
interface FannedOut {
  webhook: string;
  matched: string[];
  runs: { routine_id: string; run_id: string; status: string }[];
}

const CLAIM = { claim_id: 'C-1', model: 'Acme Duo', delivered_on: '2026-03-01', description: 'The pump is loud.' };

async function read<Body>(agentUrl: string, key: string, path: string): Promise<{ status: number; body: Body }> {
  const response = await fetch(`${agentUrl}${path}`, { headers: { authorization: `Bearer ${key}` }, signal: AbortSignal.timeout(60_000) });
  return { status: response.status, body: (await response.json()) as Body };
}

/** Waits for its end, and that of its session. */
async function settled(agentUrl: string, key: string, { run_id, session_id }: RunEnvelope): Promise<RunRecord> {
  const record = await eventually(async () => {
    const { body } = await read<RunRecord>(agentUrl, key, `/runs/${run_id}`);
    return body.completed_at === null ? null : body;
  }, TIMEOUT);
  await eventually(async () => (await read(agentUrl, key, `/sessions/${session_id}`)).status === 404, TIMEOUT);
  return record;
}

it('the lines of docs/webhooks.md sign a delivery that starts a run of an agent of docs/quick-start.md, which survives a kill, and whose repeat gets it', async () => {
  const copied = await quickStartAgent();
  const env = await webhookAgent(copied);
  // The keys come from the file alone, as after those lines.
  const ofFile = Object.fromEntries(Object.entries(env).filter(([name]) => !(name in copied.keys)));
  const first = await startStandalone({ command: ['npm', 'start'], env: { ...ofFile, SWITCHYARD_ENV_FILE: copied.envFile } });
  const lines = (agentUrl: string) => documentedWebhook().shell.replace('http://127.0.0.1:8080', agentUrl);
  const send = async (agentUrl: string) => JSON.parse((await run('sh', ['-c', lines(agentUrl)])).stdout) as RunEnvelope;

  const accepted = await send(first.agentUrl);
  await first.kill();
  const { agentUrl, keys, stop } = await startStandalone({ env, dataDir: first.dataDir, isFirstStart: true });
  expect(accepted).toMatchObject({ routine_id: 'triage-warranty-claim', status: 'accepted' });
  const record = await settled(agentUrl, keys.agentKey, accepted);

  expect(record).toMatchObject({ status: 'succeeded', output: { summary: expect.any(String) }, metadata: { webhook: 'triage-warranty-claim' } });
  expect(await send(agentUrl)).toEqual({ ...accepted, status: 'succeeded' });
  await stop();
}, 240_000);

describe.each(casesOfToday(shapes))('webhooks of a deployment $name', ({ start, isCluster }) => {
  let deployment: DeploymentUnderTest;
  beforeAll(async () => {
    deployment = await start(await webhookAgent(), isCluster ? { 'router-gateway': 0, 'actor-host': 1, 'router-worker': 1, 'effect-worker': 1 } : {});
  }, 180_000);
  afterAll(() => deployment?.stop());
  const post = <Body>(name: string, body: object) => deliver<Body>(deployment.nextAgentUrl(), name, body);
  const key = () => deployment.keys.agentKey;

  it('accept a body that breaks the input schema, and its run fails by it and leaves no session', async () => {
    const { status, body } = await post<RunEnvelope>('triage-warranty-claim', { ...CLAIM, model: 'Acme Tre' });
    expect(status).toBe(202);

    const record = await settled(deployment.nextAgentUrl(), key(), body);
    expect(record).toMatchObject({ status: 'failed', error: { code: 'input_validation_failed', details: { path: '/model' } } });
  });

  it('start a run of each routine that fields and a model find, once, at any gateway', async () => {
    const posted = await Promise.all(Array.from({ length: 4 }, () => post<FannedOut>('shop', { ...CLAIM, claim_id: 'C-2' })));
    const repeat = await post<FannedOut>('shop', { ...CLAIM, claim_id: 'C-2' });

    expect(repeat.status).toBe(200);
    const { matched, runs } = repeat.body;
    expect(matched.filter((id) => id !== 'judge-events')).toEqual(['triage-warranty-claim', 'count-events']);
    expect(runs.map(({ routine_id }) => routine_id)).toEqual(matched);
    const idsOf = ({ body }: { body: FannedOut }) => body.runs.map(({ run_id }) => run_id);
    for (const one of posted) expect(idsOf(one)).toEqual(idsOf(repeat));
    // The model was asked: its verdict on the condition is the scripted model's affair.
    const judged = await eventually(() => deployment.logLines().some((line) => line.msg === 'a router call has ended'), TIMEOUT);
    expect(judged).toBe(true);
    for (const { run_id } of runs) {
      const record = await eventually(async () => {
        const { body } = await read<RunRecord>(deployment.nextAgentUrl(), key(), `/runs/${run_id}`);
        return body.completed_at === null ? null : body;
      }, TIMEOUT);
      expect(record.metadata).toEqual({ webhook: 'shop' });
    }
  });

  it('start nothing for a body whose fields fit no routine but those that always start', async () => {
    const { body } = await post<FannedOut>('shop', { ...CLAIM, claim_id: 'C-9' });

    expect(body.matched.filter((id) => id !== 'judge-events')).toEqual(['triage-warranty-claim']);
  });
});
