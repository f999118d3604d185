import type { EventSource } from '#shared/contracts/agent/conversation-event.ts';
import type { SessionActions, SessionEvent, TurnStart } from './types.ts';

type PostArgs = { event: Extract<SessionEvent, { type: 'message.post' }> };

export function turnFor({ newTurnId, command }: PostArgs['event']): TurnStart {
  return { turnId: newTurnId, traceId: command.traceId, bundleHash: command.bundleHash, traceparent: command.traceparent };
}

export function begin() {
  return { type: 'beginTurn' as const, params: ({ event }: PostArgs): SessionActions['beginTurn'] => turnFor(event) };
}

/** A message that begins, joins or queues a turn carries the turn's trace, any other its own. */
export function append(trace: SessionActions['fact']['trace']) {
  return {
    type: 'fact' as const,
    params: ({ event: { command } }: PostArgs): SessionActions['fact'] => ({
      content: { kind: isAgentSide(command.source) ? 'assistant_message' : 'user_message', text: command.text },
      source: command.source,
      metadata: command.metadata,
      trace,
    }),
  };
}

/** Human agents write on the agent's side. */
function isAgentSide(source: EventSource): boolean {
  return source === 'human_agent' || source === 'human_agent_on_behalf_of_ai_agent';
}
