import type { AssistantMessage, ChatCompletion, RouterErrorBody, Usage } from '../../contracts/router/chat-completion.ts';
import { type Answer, finishReasonOf } from '../answer.ts';
import type { EventHead } from '../surface.ts';
import { audioOf } from './audio-of.ts';
import { imageOf } from './image-of.ts';
import { detailOf, plainDetail } from './reasoning-detail.ts';

/** With `error`: the incomplete answer before it. */
export function toCompletion(answer: Answer, head: EventHead, usage: Usage, error?: RouterErrorBody['error']): ChatCompletion {
  const message: AssistantMessage = {
    role: 'assistant',
    content: answer.text === '' && hasOtherThanText(answer) ? null : answer.text,
    refusal: answer.refusal === '' ? null : answer.refusal,
  };
  const choice: ChatCompletion['choices'][number] = {
    index: 0,
    finish_reason: error === undefined ? finishReasonOf(answer) : 'error',
    native_finish_reason: answer.nativeReason,
    logprobs: answer.logprobs,
    message,
  };
  if (answer.reasoning !== '') message.reasoning = answer.reasoning;
  if (answer.reasoning !== '' || answer.reasoningPieces !== null) {
    const details = answer.reasoningPieces?.map(detailOf) ?? [plainDetail(answer.reasoning)];
    message.reasoning_details = details;
    choice.reasoning_details = details;
  }
  if (answer.annotations !== null) message.annotations = answer.annotations;
  if (answer.images !== null) message.images = answer.images.map(imageOf);
  if (answer.audio !== null) message.audio = audioOf(answer.audio);
  if (answer.toolCalls.length > 0) message.tool_calls = answer.toolCalls;
  if (error !== undefined) choice.error = error;
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    provider: head.provider,
    system_fingerprint: answer.metadata.systemFingerprint,
    ...(answer.metadata.serviceTier !== null && { service_tier: answer.metadata.serviceTier }),
    choices: [choice],
    usage,
  };
}

function hasOtherThanText({ toolCalls, refusal, audio }: Answer): boolean {
  return toolCalls.length > 0 || refusal !== '' || audio !== null;
}
