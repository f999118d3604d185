import { recordOf } from '#actors/engine/decision-record.ts';
import type { TurnRecord } from '#shared/contracts/agent/turn-record.ts';
import type { Exchange } from './conversation.ts';

/** What a turn has decided, without ids of effects and times. */
export interface Decisions extends Pick<TurnRecord, 'error' | 'policies' | 'resolutions' | 'clarifications'> {
  /** `none`: no turn began, as in manual mode. */
  outcome: 'replied' | 'failed' | 'cancelled' | 'none';
  /** The current step, by routine. */
  steps: Record<string, string>;
  /** In the order of the calls. */
  tools: { toolId: string; arguments: Record<string, unknown>; hasFailed: boolean }[];
  /** What is asked for, since a tool lacks it. */
  questions: { toolId: string; parameter: string }[];
  reply: string | null;
}

/** Of an exchange, as the record of its turn says. At least one event. */
export function decisionsOf({ events, rows }: Exchange): Decisions {
  const { outcome, error, policies, resolutions, clarifications, steps, tools, questions } = recordOf(events, rows, []);
  const reply = events.findLast(({ kind, source }) => kind === 'assistant_message' && source === 'ai_agent');
  return {
    ...{ error, policies, resolutions, clarifications },
    outcome: outcome === 'in_progress' || outcome === 'silent' ? 'none' : outcome,
    steps: Object.fromEntries(steps.map(({ routine_id: routine, step_id: step }) => [routine, step])),
    tools: tools.map(({ tool_id: toolId, arguments: given, failed: hasFailed }) => ({ toolId, arguments: given, hasFailed })),
    questions: questions.map(({ tool_id: toolId, parameter }) => ({ toolId, parameter })),
    reply: reply?.kind === 'assistant_message' ? reply.text : null,
  };
}
