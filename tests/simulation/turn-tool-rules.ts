import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import type { Simulation } from './simulation.ts';

interface ToolRow {
  kind: string;
  call?: { toolId: string; arguments: Record<string, unknown> };
}

interface Result {
  done?: string;
  error?: string;
}

/** Each call that a turn has made is in the log once, with what became of it. */
export function checkToolsOfTurns({ watch, model: { tables }, environment }: Simulation, logs: ReadonlyMap<string, readonly ConversationEvent[]>): void {
  const logged = new Map<string, number>();
  for (const [session, log] of logs) {
    for (const event of log) {
      if (event.kind !== 'tool' || event.source !== 'ai_agent' || event.trace_id.startsWith('f')) continue;
      for (const { tool_id: toolId, arguments: args, result } of event.tool_calls) {
        const key = keyOf(toolId, args);
        logged.set(key, (logged.get(key) ?? 0) + 1);
        if ((logged.get(key) ?? 0) > 1) watch.breach('once', `the result of ${key} stands twice in ${session}`);
        const { done, error } = result.data as Result;
        const times = environment.toolEffects.get(key) ?? 0;
        if (done !== undefined && (done !== key || times === 0)) watch.breach('tool', `${session} has a result of ${done}, but ${key} happened ${times} times`);
        if (error !== undefined && error !== 'outcome_unknown' && toolId === 'shop:refund' && times > 0)
          watch.breach('tool', `${session} has ${error} for ${key}, which happened`);
      }
    }
  }
  for (const [turn, rows] of tables.turnSteps) {
    for (const row of rows) {
      const { call } = JSON.parse(row['body'] as string) as ToolRow;
      if (call === undefined) continue;
      const key = keyOf(call.toolId, call.arguments);
      const isOver = tables.sessions.get(row['session_id'] as string)?.['deleted_at'] != null;
      if (!isOver && !logged.has(key)) watch.breach('tool', `${turn} has a result of ${key}, which is not in the log`);
    }
  }
}

/** As the environment counts effects. */
export function keyOf(toolId: string, args: Record<string, unknown>): string {
  return `${toolId.replace('shop:', '')} ${String(args['callId'])} ${String(args['n'])}`;
}
