import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import type { Answer } from '#shared/surfaces/answer.ts';
import type { CallSignal } from '../call-signal.ts';

/** Before the candidates are chosen. @returns the request to route @throws SwitchyardError to end the call */
export type RequestStage = (request: ChatRequest, signal: CallSignal) => Promise<ChatRequest>;

/**
 * Between provider and surface. Called per attempt, with the answer that the transformed parts are added to; returns what each batch becomes. A batch without
 * content is not published.
 */
export type PartTransform = (answer: Answer) => (parts: readonly ProviderPart[]) => readonly ProviderPart[];

/** Behind a whole answer; streams have none. @throws SwitchyardError to end the call */
export type AnswerTransform = (answer: Answer, request: ChatRequest, signal: CallSignal) => Promise<Answer>;

/** A file and a row in a table (stages.ts, plugin-stages.ts). It has a function for each position that it takes in the pipeline. */
export interface Stage {
  appliesTo(request: ChatRequest): boolean;
  request?: RequestStage;
  parts?: PartTransform;
  answer?: AnswerTransform;
}
