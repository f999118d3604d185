import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import type { Row } from './model-rows.ts';
import type { Simulation } from './simulation.ts';
import { keyOf } from './turn-tool-rules.ts';

/** A call that a cancelled run has made, and that must not be repeated, stands in its log, which ends with the run: none is made for a run that has settled. */
export function checkCancelledRuns(
  { watch, model: { tables }, gateway, environment, counts }: Simulation,
  logs: ReadonlyMap<string, readonly ConversationEvent[]>,
): void {
  counts.runs = gateway.runs.length;
  counts.callsWithdrawn = [...tables.claims.values()].filter(({ withdrawn }) => withdrawn === true).length;
  for (const { id, sessionId, ephemeral } of gateway.runs) {
    const made = [...environment.toolEffects.keys()].filter((key) => key.split(' ')[1]?.startsWith(`${id}-`));
    if (made.length > 0) counts.runsWithTools += 1;
    if ([...environment.modelCalls.keys()].some((callId) => callId.startsWith(`${id}-`))) counts.runsAsked += 1;
    // The log of an ephemeral run is gone with its session.
    if (ephemeral || !wasCancelled(tables.runs.get(id)) || tables.sessions.get(sessionId)?.['deleted_at'] != null) continue;
    const calls = (logs.get(sessionId) ?? []).flatMap((event) => (event.kind === 'tool' ? event.tool_calls : []));
    const logged = new Set(calls.map(({ tool_id: toolId, arguments: args }) => keyOf(toolId, args)));
    for (const key of made.filter((one) => one.startsWith('refund '))) {
      counts.callsOfCancelled += 1;
      if (!logged.has(key)) watch.breach('cancelled', `${id} was cancelled, and ${key} happened and is not in the log`);
    }
  }
}

function wasCancelled(run: Row | undefined): boolean {
  const error = JSON.parse((run?.['error'] as string | null | undefined) ?? 'null') as { details?: { reason?: string } } | null;
  return error?.details?.reason === 'cancelled';
}
