import type { AssistantMessage, ChatCompletion, ReasoningDetail, RouterErrorBody, Usage } from '../../contracts/router/chat-completion.ts';
import { type Answer, finishReasonOf } from '../answer.ts';
import type { AnswerHead } from '../surface.ts';

/** With `error`: the incomplete answer before it. */
export function toCompletion(answer: Answer, head: AnswerHead, usage: Usage, error?: RouterErrorBody['error']): ChatCompletion {
  const message: AssistantMessage = {
    role: 'assistant',
    content: answer.text === '' && (answer.toolCalls.length > 0 || answer.refusal !== '') ? null : answer.text,
    refusal: answer.refusal === '' ? null : answer.refusal,
  };
  const choice: ChatCompletion['choices'][number] = {
    index: 0,
    finish_reason: error === undefined ? finishReasonOf(answer) : 'error',
    native_finish_reason: answer.nativeReason,
    logprobs: answer.logprobs,
    message,
  };
  if (answer.reasoning !== '') {
    const details = [reasoningDetail(answer.reasoning)];
    message.reasoning = answer.reasoning;
    message.reasoning_details = details;
    choice.reasoning_details = details;
  }
  if (answer.toolCalls.length > 0) message.tool_calls = answer.toolCalls;
  if (error !== undefined) choice.error = error;
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    provider: head.provider,
    system_fingerprint: null,
    choices: [choice],
    usage,
  };
}

/** Clients merge pieces with the same `index`. */
export function reasoningDetail(text: string): ReasoningDetail {
  return { type: 'reasoning.text', text, index: 0, format: 'unknown' };
}
