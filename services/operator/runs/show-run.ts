import type { AgentClient } from '#client/agent-client.ts';
import { printable } from '../commands/dependencies.ts';

const PAGE_STEPS = 200;

/** Prints a run, its first 200 steps, and how far its callback is. @throws AgentError */
export async function showRun(
  runId: string,
  { json }: { json: boolean },
  { client, print }: { client: AgentClient; print(line: string): void },
): Promise<void> {
  const path = { run_id: runId };
  const [run, { items: steps }, { items: deliveries }] = await Promise.all([
    client.request('GET', '/runs/{run_id}', { path }),
    client.request('GET', '/runs/{run_id}/steps', { path, query: { limit: PAGE_STEPS } }),
    client.request('GET', '/runs/{run_id}/deliveries', { path }),
  ]);
  if (json) return print(JSON.stringify({ run, steps, deliveries }, null, 2));
  print(`${run.run_id} of ${printable(run.routine_id)}: ${run.status}, in session ${run.session_id}, since ${run.created_at}`);
  for (const { kind, tool_id: toolId, outcome, reason, ms } of steps) {
    const parts = [kind, toolId, outcome ?? 'in flight', reason, ms === null ? null : `${Math.round(ms)} ms`];
    print(`  ${printable(parts.filter((part) => part !== null && part !== undefined).join(' '))}`);
  }
  for (const { url, state, attempts } of deliveries) print(`Callback to ${printable(url)}: ${state} after ${attempts} ${attempts === 1 ? 'try' : 'tries'}`);
  if (run.error != null) print(`Error: ${printable(`${run.error.message} (${run.error.code})`)}`);
  else if (run.output != null) print(JSON.stringify(run.output, null, 2));
}
