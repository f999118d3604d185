import type { CommandOf } from '#bus/messages/session.ts';
import type { EventContent, EventSource } from '#shared/contracts/agent/conversation-event.ts';
import type { PostedEvent } from './types.ts';

type Post = CommandOf<'message.post' | 'tool-event.post' | 'client-event.post'>;

/** What a command appends to the log, and the turn that it requests. */
export function postedEvent(command: Post): PostedEvent {
  const { metadata } = command;
  switch (command.type) {
    case 'message.post': {
      const { source, text, participant, moderation } = command;
      const kind = isAgentSide(source) ? 'assistant_message' : 'user_message';
      return {
        content: { kind, text, ...(participant && { participant }) },
        source,
        metadata,
        turn: turnOf(command),
        joins: true,
        moderation: moderation ?? null,
      };
    }
    case 'tool-event.post': {
      const { toolId, arguments: given, result = null, resultMetadata } = command;
      const call = { tool_id: toolId, arguments: given, result: { data: result, metadata: resultMetadata } };
      // The contract: it cancels the turn in progress, however recent.
      return { content: { kind: 'tool', tool_calls: [call] }, source: 'system', metadata, turn: turnOf(command), joins: false, moderation: null };
    }
    case 'client-event.post': {
      const { content: given, source } = command;
      return { content: given.kind === 'custom' ? customOf(given) : statusOf(given), source, metadata, turn: null, joins: false, moderation: null };
    }
  }
}

function turnOf({ triggersTurn, traceId, bundleHash, traceparent, carried }: Exclude<Post, { type: 'client-event.post' }>): PostedEvent['turn'] {
  return triggersTurn ? { traceId, bundleHash, traceparent, ...(carried && { carried }) } : null;
}

type Content<Kind> = Extract<CommandOf<'client-event.post'>['content'], { kind: Kind }>;

function customOf({ data = null }: Content<'custom'>): EventContent {
  return { kind: 'custom', data };
}

function statusOf({ status, data }: Content<'status'>): EventContent {
  return { kind: 'status', status, stage: null, error_detail: null, ...(data !== undefined && { data }) };
}

/** Human agents write on the agent's side. */
function isAgentSide(source: EventSource): boolean {
  return source === 'human_agent' || source === 'human_agent_on_behalf_of_ai_agent';
}
