import type { Resolution } from '#actors/engine/relationships/resolution.ts';
import { currentRows, type TurnRow } from '#actors/engine/turn-row.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { Exchange } from './conversation.ts';

/** What a turn has decided, without ids of effects and times. */
export interface Decisions {
  /** `none`: no turn began, as in manual mode. */
  outcome: 'replied' | 'failed' | 'cancelled' | 'none';
  /** Why it has failed. */
  error: string | null;
  /** In force, in the manifest's order. */
  policies: { id: string; rationale: string | null }[];
  /** What relationships have added or left out. */
  resolutions: Resolution[];
  /** The current step, by routine. */
  steps: Record<string, string>;
  /** In the order of the calls. */
  tools: { toolId: string; arguments: Record<string, unknown>; hasFailed: boolean }[];
  /** What is asked for, since a tool lacks it. */
  questions: { toolId: string; parameter: string }[];
  clarifications: string[];
  reply: string | null;
}

export function decisionsOf({ events, rows }: Exchange): Decisions {
  const resolved = rows.length === 0 ? undefined : currentRows(rows).rows.findLast((row) => row.kind === 'resolved');
  const { policies = [], resolutions = [], steps = [], questions = [], clarifications = [] } = resolved?.kind === 'resolved' ? resolved : {};
  return {
    ...endOf(events),
    policies: policies.map(({ id, rationale }) => ({ id, rationale })),
    resolutions: [...resolutions],
    steps: Object.fromEntries(steps.map(({ routineId, stepId }) => [routineId, stepId])),
    tools: rows.flatMap(toolIn),
    questions: questions.map(({ toolId, parameter }) => ({ toolId, parameter })),
    clarifications: clarifications.map(({ action }) => action),
  };
}

function toolIn(row: TurnRow): Decisions['tools'] {
  return row.kind === 'tool' ? [{ toolId: row.call.toolId, arguments: row.call.arguments, hasFailed: row.call.hasFailed }] : [];
}

function endOf(events: readonly ConversationEvent[]): Pick<Decisions, 'outcome' | 'error' | 'reply'> {
  const reply = events.findLast(({ kind, source }) => kind === 'assistant_message' && source === 'ai_agent');
  const statuses = events.flatMap((event) => (event.kind === 'status' ? [event] : []));
  const failed = statuses.findLast(({ status }) => status === 'error');
  const text = reply?.kind === 'assistant_message' ? reply.text : null;
  if (failed !== undefined) return { outcome: 'failed', error: failed.error_detail, reply: text };
  if (text !== null) return { outcome: 'replied', error: null, reply: text };
  return { outcome: statuses.some(({ status }) => status === 'cancelled') ? 'cancelled' : 'none', error: null, reply: null };
}
