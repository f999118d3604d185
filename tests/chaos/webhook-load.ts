import { createHash, createHmac } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { z } from 'zod';
import type { FailPoint } from '../../shared/fail-points.ts';
import { eventually } from '../helpers/eventually.ts';
import { WEBHOOK, WEBHOOK_SECRET } from './agent-files.ts';
import { type Environment, TIMEOUT_MS } from './environment.ts';

/** A delivery that was answered, as often as it was posted. */
export interface AcceptedDelivery {
  /** Of its row and its runs. */
  key: string;
  /** Of its input, as the tools see it. */
  inputKey: string;
  /** By routine, of each answer. */
  answers: Record<string, string>[];
}

/** The points at which `webhook-fail-points.test.ts` kills and stops gateways, in the order of a delivery. */
export const webhookPoints = ['webhook.matched', 'run.stored', 'run.started'] as const satisfies readonly FailPoint[];

/** As many posts of a delivery, the first two at once. */
const POSTS = 3;
const RETRY_MS = 200;
/** A model call that is lost with the broker's state is made again after 20 s, and a delivery after both. */
const ANSWERED_MS = 180_000;

const fannedOut = z.object({ matched: z.array(z.string()), runs: z.array(z.object({ routine_id: z.string(), run_id: z.string(), status: z.string() })) });
const runRecord = z.looseObject({ status: z.string(), completed_at: z.string().nullable() });

let sent = 0;

/** Posts a delivery at several gateways, and waits for its runs, which bounds those in flight. */
export async function sendDelivery(environment: Environment): Promise<AcceptedDelivery> {
  sent += 1;
  const inputKey = `hook-${process.pid}-${sent}`;
  const body = JSON.stringify({ key: inputKey, noted: true });
  const first = await Promise.all([post(environment, body), post(environment, body)]);
  const answers = [...first, ...(await Promise.all(Array.from({ length: POSTS - first.length }, () => post(environment, body))))];
  for (const runId of Object.values(answers[0] ?? {})) {
    await eventually(async () => runRecord.parse((await environment.client.get(`/runs/${runId}`)).body).completed_at !== null, { timeoutMs: 2 * TIMEOUT_MS });
  }
  return { key: `wh:${WEBHOOK}:${createHash('sha256').update(body).digest('hex')}`, inputKey, answers };
}

/** As a provider does: again after a failure of the server or the connection. @returns the runs by their routine */
async function post({ nextAgentUrl, figures }: Environment, body: string): Promise<Record<string, string>> {
  const untilMs = performance.now() + ANSWERED_MS;
  const headers = { 'content-type': 'application/json', 'x-signature': createHmac('sha256', WEBHOOK_SECRET).update(body).digest('hex') };
  for (;;) {
    const answered = await fetch(`${nextAgentUrl()}/webhooks/${WEBHOOK}`, { method: 'POST', headers, body, signal: AbortSignal.timeout(ANSWERED_MS) })
      .then(async (response) => ({ status: response.status, body: (await response.json()) as unknown }))
      .catch((error: unknown) => {
        if (error instanceof DOMException) throw error;
        return null;
      });
    if (answered?.status === 200) return Object.fromEntries(fannedOut.parse(answered.body).runs.map(({ routine_id, run_id }) => [routine_id, run_id]));
    const mayPass = answered === null || answered.status === 502 || answered.status === 503;
    if (!mayPass || performance.now() > untilMs) throw new Error(`a delivery was answered ${answered?.status}: ${JSON.stringify(answered?.body)}`);
    figures.sentAgain += 1;
    await delay(RETRY_MS);
  }
}

/** One run of each routine, the same in every answer, without a callback, in a session that is gone; its tool was called at most once. */
export async function checkDelivery({ database, tools, figures }: Environment, { key, inputKey, answers }: AcceptedDelivery): Promise<void> {
  const { rows } = await database.query<{ id: string; routine_id: string; matched: string[]; callback_url: string | null; is_gone: boolean; calls: number }>(
    `select runs.id, routine_id, matched, callback_url, (select count(*)::int from deliveries where run_id = runs.id) as calls,
       not exists (select 1 from sessions where sessions.id = runs.session_id and deleted_at is null) as is_gone
     from webhook_deliveries left join runs on idempotency_key = key where key = $1 order by routine_id`,
    [key],
  );
  const [first] = rows;
  expect(
    rows.map(({ routine_id }) => routine_id),
    `${inputKey} has not one run of each routine`,
  ).toEqual([...(first?.matched ?? ['none'])].sort());
  const stored = Object.fromEntries(rows.map(({ routine_id, id }) => [routine_id, id]));
  for (const answer of answers) expect(answer, `an answer to ${inputKey} has other runs`).toEqual(stored);
  for (const { id, callback_url, is_gone, calls } of rows)
    expect({ id, callback_url, is_gone, calls }).toEqual({ id, callback_url: null, is_gone: true, calls: 0 });
  expect(tools.booked.get(inputKey) ?? 0, `${inputKey} was booked twice`).toBeLessThanOrEqual(1);
  figures.deliveries += 1;
  figures.deliveryRepeats += answers.length - 1;
}
