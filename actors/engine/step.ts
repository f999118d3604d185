import type { FoundDocument } from '#bus/messages/found-document.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';

/** What every step's prompt is made from. Rendered in this order: instructions, system prompt, glossary, variables, history, staged results, the step's items. */
export interface StepView {
  /** Of the call: its random part bounds fenced data. */
  callId: string;
  /** When the call was opened, epoch ms. */
  nowMs: number;
  agent: { id: string; name: string };
  /** Null for a guest. */
  customerName: string | null;
  systemPrompt: string;
  /** `match_user`, or a verbatim instruction. */
  language: string;
  glossary: readonly { name: string; description: string; synonyms: readonly string[] }[];
  /** Those that models may see and that have a value, in the order of the documents. */
  variables: readonly { name: string; description?: string; value: unknown }[];
  /** In log order. */
  history: readonly ConversationEvent[];
  /** The reply that is about to be sent; absent: there is none yet. */
  draft?: string;
  /** Of this turn's search, the best first; for the reply alone. Absent: nothing was found. */
  retrieved?: readonly FoundDocument[];
  /** Why the answer to the same question, which is asked once more, can't be used. Absent: it is asked for the first time. */
  fault?: string;
  /** Of this turn's tool calls, in order. */
  staged: readonly { toolId: string; arguments: Record<string, unknown>; result: unknown }[];
}

/**
 * A structured model call of the engine: what is asked of the model about an item, and what its reply says. Pure: equal inputs give equal bytes in any
 * process. Items are named by ordinals from 1 in prompts and replies.
 */
export interface EngineStep<Item, Answer> {
  /** Name and number, stored with each call; another number with each change of what `render` returns. */
  readonly template: string;
  render(view: StepView, item: Item): StepRequest;
  /** Of templates of releases before, by their name: for calls that those have opened, and that are rendered again after an upgrade. */
  readonly renderEarlier?: Readonly<Record<string, (view: StepView, item: Item) => StepRequest>>;
  /** Malformed: not JSON of the schema, or with ordinals that are unknown, missing or repeated. */
  read(reply: StepReply, item: Item): { type: 'read'; answer: Answer } | { type: 'malformed'; reason: string };
}

type StepRequest = Pick<ChatRequest, 'messages' | 'response_format' | 'tools' | 'tool_choice'>;

interface StepReply {
  text: string;
  toolCalls: readonly { id: string; name: string; arguments: string }[];
  finishReason: string;
  /** The answer before it was malformed, so that no other is asked for. Absent: it is the first. */
  isAskedAgain?: boolean;
}
