import type { AgentEvent } from '#client/api.ts';

/** `person`: a human agent. */
export type Author = 'customer' | 'agent' | 'person' | 'system';

/** `at`: RFC 3339. */
interface Placed {
  key: string;
  offset: number;
  at: string;
}

interface MessageEntry extends Placed {
  type: 'message';
  author: Author;
  /** As its poster states it; null: none is stated. */
  name: string | null;
  text: string;
  isPreamble: boolean;
}

export interface ToolCall {
  toolId: string;
  /** JSON, shortened. */
  given: string;
  result: string;
}

/** What one event of the log is on the page. */
export type Entry =
  | MessageEntry
  | (Placed & { type: 'tools'; calls: ToolCall[] })
  | (Placed & { type: 'error'; detail: string })
  | (Placed & { type: 'cancelled' });

/** Of one argument or result of a tool. */
const MAX_JSON_CHARACTERS = 20_000;
const MAX_CALLS = 200;

/** The entry of an event. Null: it has none, is of an unknown kind, or is a message without text, as consumers have to ignore. */
export function entryOf(event: AgentEvent): Entry | null {
  const { kind, created_at: createdAt, source, text, participant, status, error_detail: detail, tool_calls: calls }: Loose = event;
  const placed = { key: event.id ?? String(event.offset), offset: event.offset, at: typeof createdAt === 'string' ? createdAt : '' };
  switch (kind) {
    case 'user_message':
    case 'preamble':
    case 'assistant_message': {
      if (typeof text !== 'string' || text === '') return null;
      const name = Object(participant)['display_name'];
      return {
        type: 'message',
        ...placed,
        author: authorOf(kind, source),
        name: typeof name === 'string' ? name : null,
        text,
        isPreamble: kind === 'preamble',
      };
    }
    case 'tool': {
      if (!Array.isArray(calls) || calls.length === 0) return null;
      return { type: 'tools', ...placed, calls: calls.slice(0, MAX_CALLS).map(toolCall) };
    }
    case 'status':
      if (status === 'error') return { type: 'error', ...placed, detail: typeof detail === 'string' ? detail : '' };
      return status === 'cancelled' ? { type: 'cancelled', ...placed } : null;
    default:
      return null;
  }
}

/** What arrives may be of another version of the server. */
type Loose = Partial<Record<'kind' | 'created_at' | 'source' | 'text' | 'participant' | 'status' | 'error_detail' | 'tool_calls', unknown>>;

function authorOf(kind: string, source: unknown): Author {
  if (source === 'human_agent' || source === 'human_agent_on_behalf_of_ai_agent') return 'person';
  if (source === 'system') return 'system';
  return kind === 'user_message' ? 'customer' : 'agent';
}

function toolCall(call: unknown): ToolCall {
  const { tool_id: toolId, arguments: given, result } = Object(call);
  return { toolId: typeof toolId === 'string' ? toolId : '', given: shortJson(given), result: shortJson(Object(result)['data'] ?? result) };
}

function shortJson(value: unknown): string {
  const text = JSON.stringify(value, null, 2) ?? '';
  return text.length <= MAX_JSON_CHARACTERS ? text : `${text.slice(0, MAX_JSON_CHARACTERS)}\n… ${text.length - MAX_JSON_CHARACTERS} more characters`;
}
