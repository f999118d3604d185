import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { z } from 'zod';
import { eventually } from '../helpers/eventually.ts';
import type { RetryingClient } from '../helpers/retrying-client.ts';
import { ROUTINE } from './agent-files.ts';
import { type Environment, TIMEOUT_MS } from './environment.ts';
import type { AcceptedRun } from './load.ts';

/** A run whose cancellation was answered. */
export interface CancelledRun extends AcceptedRun {
  /** 202: cancelled; 409: it had settled before. */
  answer: number;
}

/** In turn, so that runs are cancelled before their first step, in each of their calls, and behind their end. */
const AFTER_MS = [0, 60, 150, 300, 700, 2_000];

const runEnvelope = z.looseObject({ run_id: z.string() });
const payload = z.looseObject({ run_id: z.string(), status: z.string(), output: z.unknown(), error: z.unknown() });
const CANCELLED = { code: 'engine_error', details: { reason: 'cancelled' } };

let triggered = 0;

/** Triggers a run, cancels it twice, and waits for its callback. @throws when the second answer is another one */
export async function cancelRun({ receiver, client: canceller }: Environment, client: RetryingClient): Promise<CancelledRun> {
  triggered += 1;
  const key = `cancelled-${process.pid}-${triggered}`;
  const callback = receiver.address(204);
  const accepted = await client.post(`/routines/${ROUTINE}/trigger`, { input: { key }, callback_url: callback.url, idempotency_key: key });
  if (accepted.status !== 202 && accepted.status !== 409) throw new Error(`a trigger was answered ${accepted.status}: ${JSON.stringify(accepted.body)}`);
  const { run_id: runId } = runEnvelope.parse(accepted.body);
  // A plain wait: it decides where the run is when it is cancelled.
  await delay(AFTER_MS[triggered % AFTER_MS.length] ?? 0);
  // A client that repeats whatever is answered 202 would cancel for ever.
  const first = await canceller.post(`/runs/${runId}/cancel`, {});
  const again = await canceller.post(`/runs/${runId}/cancel`, {});
  expect([first.status, again.status], `the cancellations of ${runId}: ${JSON.stringify(first.body)}`).toBeOneOf([
    [202, 202],
    [409, 409],
  ]);
  await eventually(() => callback.received.length > 0, { timeoutMs: TIMEOUT_MS });
  return { runId, key, callback, answer: first.status };
}

/** It settled once, as its cancellation was answered, and is called back with one payload; its tool was called at most once. */
export async function checkCancelled({ client, tools, figures }: Environment, { runId, key, answer, callback: { received } }: CancelledRun): Promise<void> {
  const bodies = new Set(received.map(({ body }) => String(body)));
  expect(bodies.size, `${runId} was called back with ${bodies.size} payloads`).toBe(1);
  const reported = payload.parse(JSON.parse([...bodies][0] ?? ''));
  const settled = answer === 202 ? { status: 'failed', output: null, error: CANCELLED } : { status: 'succeeded', error: null };
  expect(reported, `the callback of ${runId}, whose cancellation was answered ${answer}`).toMatchObject({ run_id: runId, ...settled });
  expect((await client.get(`/runs/${runId}`)).body, `the record of ${runId}`).toMatchObject({ run_id: runId, ...settled, output: reported.output });
  expect(tools.booked.get(key) ?? 0, `${key} was booked twice`).toBeLessThanOrEqual(1);
  if (answer === 202) figures.runsCancelled += 1;
  figures.callbacks += received.length;
}
