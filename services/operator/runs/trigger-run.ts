import { setTimeout as delay } from 'node:timers/promises';
import type { AgentClient } from '#client/agent-client.ts';
import { AgentError } from '#client/agent-error.ts';
import type { Run } from '#client/api.ts';
import { newKey } from '#client/new-key.ts';

interface Trigger {
  routineId: string;
  callbackUrl: string;
  input: Record<string, unknown>;
  /** Null: one of its own. */
  sessionId: string | null;
}

const POLL_MS = 500;
const MAX_POLL_MS = 5_000;

/**
 * Starts a run and prints its id, or waits for its outcome and prints that.
 *
 * @throws AgentError; of a failed run that is waited for: its error
 */
export async function triggerRun(
  { routineId, callbackUrl, input, sessionId }: Trigger,
  { wait, json }: { wait: boolean; json: boolean },
  { client, print, progress }: { client: AgentClient; print(line: string): void; progress(text: string): void },
): Promise<void> {
  const key = newKey();
  const body = { input, callback_url: callbackUrl, session_id: sessionId, idempotency_key: key };
  const { run_id: runId } = await client
    .request('POST', '/routines/{routine_id}/trigger', { path: { routine_id: routineId }, body, idempotencyKey: key })
    .catch(earlierRun);
  const run = wait ? await settledRun(client, runId, progress) : await readRun(client, runId);
  if (json) print(JSON.stringify(run, null, 2));
  else if (!wait) print(`${runId} is ${run.status}, in session ${run.session_id}.`);
  else if (run.error == null) print(JSON.stringify(run.output, null, 2));
  if (wait && run.error != null) throw new AgentError(run.error.code, `${runId} has failed: ${run.error.message}`, { status: 200 });
}

/** The first try was accepted, and its answer lost. @throws any other error */
function earlierRun(error: unknown): { run_id: string } {
  const { run_id: runId } = Object(error instanceof AgentError && error.status === 409 ? error.body : null);
  if (typeof runId !== 'string') throw error;
  return { run_id: runId };
}

async function settledRun(client: AgentClient, runId: string, progress: (text: string) => void): Promise<Run> {
  for (let pauseMs = POLL_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_POLL_MS)) {
    const run = await readRun(client, runId);
    if (run.completed_at !== null) return run;
    progress(`${runId} is ${run.status}`);
    await delay(pauseMs);
  }
}

function readRun(client: AgentClient, runId: string): Promise<Run> {
  return client.request('GET', '/runs/{run_id}', { path: { run_id: runId } });
}
