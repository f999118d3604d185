import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';

/** A question about a document, without a session: asked once for each content, at boot. */
export interface EvaluationStep<Item, Result> {
  /** Name and number; another number with each change of what `render` returns, so that the question is asked anew. */
  readonly template: string;
  render(item: Item): Required<Pick<ChatRequest, 'messages' | 'response_format'>>;
  read(text: string, item: Item): { type: 'read'; result: Result } | { type: 'malformed'; reason: string };
}
