import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type CallbackReceiver, openCallbackReceiver } from '../helpers/callback-receiver.ts';
import { eventually } from '../helpers/eventually.ts';
import { root } from '../helpers/run-program.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';

const HOUR_MS = 3_600_000;
const TIMEOUT = { timeoutMs: 60_000 };
/** One ahead and one behind, so that timestamps of one process are read by another whose clock is two hours off. */
const SHIFTS = { 'agent-gateway': -HOUR_MS, 'actor-host': HOUR_MS, 'router-worker': -HOUR_MS, 'effect-worker': HOUR_MS } as const;

let receiver: CallbackReceiver;
let cluster: Cluster;
const lines: string[] = [];

beforeAll(async () => {
  receiver = await openCallbackReceiver();
  const none = { 'router-gateway': 0, 'agent-gateway': 0, 'actor-host': 0, 'router-worker': 0, 'effect-worker': 0 };
  const env = { LOG_LEVEL: 'warn', OUTBOUND_ALLOW_HOSTS: receiver.host };
  cluster = await startCluster({ roles: none, env, onLine: (line) => void lines.push(line) });
  const preload = `--import=${pathToFileURL(`${root}tests/helpers/shifted-date.mjs`)}`;
  // One after the other: the start is not tested here, and has a bound.
  for (const [role, shiftMs] of Object.entries(SHIFTS))
    await cluster.add(role as keyof typeof SHIFTS, { NODE_OPTIONS: preload, SHIFT_DATE_MS: String(shiftMs) });
});
afterAll(async () => {
  await cluster.stop();
  await receiver.close();
});

it('DESIGN 6: runs succeed though the clocks of their gateway, host and workers are wrong by an hour, and each of these processes says that it is', async () => {
  const callback = receiver.address();
  const response = await fetch(`${cluster.agentUrls[0]}/routines/triage-warranty-claim/trigger`, {
    method: 'POST',
    headers: { authorization: `Bearer ${cluster.keys.agentKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      callback_url: callback.url,
      input: { claim_id: 'C-1', model: 'Acme Duo', delivered_on: '2026-03-01', description: 'The pump is loud.' },
    }),
  });
  const run = (await response.json()) as { created_at: string };
  expect([response.status, run]).toEqual([202, expect.objectContaining({ status: 'accepted' })]);
  const received = await eventually(() => callback.received[0], TIMEOUT);

  const payload = JSON.parse(String(received.body));
  expect(payload).toMatchObject({ status: 'succeeded', error: null });
  const instants = [run.created_at, payload.started_at, payload.completed_at].map((text) => Math.abs(Date.parse(text) - Date.now()));
  expect(Math.max(...instants)).toBeLessThan(HOUR_MS / 2);

  for (const [role, shiftMs] of Object.entries(SHIFTS)) {
    const warnings = lines.filter((line) => line.includes(`"service":"${role}"`) && line.includes('differs from the database'));
    expect(warnings).toHaveLength(1);
    const [process] = cluster.running(role as keyof typeof SHIFTS);
    const metrics = await (await fetch(`${process?.managementUrl}/metrics`)).text();
    const seconds = Number(/^switchyard_clock_skew_seconds (\S+)$/m.exec(metrics)?.[1]);
    expect(Math.abs(seconds * 1_000 - shiftMs)).toBeLessThan(HOUR_MS / 60);
  }
});
