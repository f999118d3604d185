import type { CommandOf } from '#bus/messages/session.ts';
import type { EventSource } from '#shared/contracts/agent/conversation-event.ts';
import type { PostedEvent } from './types.ts';

type Post = CommandOf<'message.post' | 'tool-event.post'>;

/** What a command appends to the log, and the turn that it requests. */
export function postedEvent(command: Post): PostedEvent {
  const { metadata, triggersTurn, traceId, bundleHash, traceparent } = command;
  const turn = triggersTurn ? { traceId, bundleHash, traceparent } : null;
  switch (command.type) {
    case 'message.post': {
      const { source, text } = command;
      return { content: { kind: isAgentSide(source) ? 'assistant_message' : 'user_message', text }, source, metadata, turn, joins: true };
    }
    case 'tool-event.post': {
      const { toolId, arguments: given, result = null, resultMetadata } = command;
      const call = { tool_id: toolId, arguments: given, result: { data: result, metadata: resultMetadata } };
      // The contract: it cancels the turn in progress, however recent.
      return { content: { kind: 'tool', tool_calls: [call] }, source: 'system', metadata, turn, joins: false };
    }
  }
}

/** Human agents write on the agent's side. */
function isAgentSide(source: EventSource): boolean {
  return source === 'human_agent' || source === 'human_agent_on_behalf_of_ai_agent';
}
