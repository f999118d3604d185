import { cleanJson, cleanText } from '#shared/clean-text.ts';
import type { StepMessage, ToolOutcome } from '../tool-loop/types.ts';

/** Of one result; each later call of the run repeats it. */
const MAX_RESULT_CHARS = 131_072;

/** Of a worker's reason for refusing a call. */
const MAX_REASON_CHARS = 2_000;

type ToolMessage = Extract<StepMessage, { role: 'tool' }>;
type FailureReason = Extract<ToolOutcome, { type: 'failed' }>['reason'];

/** For the model: how to go on after a failed call. */
const ADVICE: Record<FailureReason, string> = {
  outcome_unknown: 'The call was made, and it is not known whether it had an effect. Do not make it again unless that does no harm.',
  refused: 'The call was not made.',
  timeout: 'The tool gave no answer in time.',
  unreachable: 'The tool server can not be reached.',
  auth_failed: 'The tool server refuses the credentials.',
};

/** A tool call's outcome: `content` for the model, `result` for the event log. */
export function toolMessage(toolCallId: string, outcome: ToolOutcome): ToolMessage {
  if (outcome.type === 'failed') {
    const { reason, message } = outcome;
    const advice = reason === 'refused' && message !== '' ? `${ADVICE.refused} ${message.slice(0, MAX_REASON_CHARS)}` : ADVICE[reason];
    return {
      role: 'tool',
      tool_call_id: toolCallId,
      content: cleanJson({ error: reason, message: advice }),
      result: { data: { error: reason }, metadata: { error: message } },
    };
  }
  const { data, metadata, isError } = outcome;
  const content = isError ? cleanJson({ error: 'tool_failed', result: data }) : typeof data === 'string' ? cleanText(data) : cleanJson(data);
  return {
    role: 'tool',
    tool_call_id: toolCallId,
    content: bounded(content),
    result: { data: data ?? null, metadata: isError ? { ...metadata, error: 'the tool says that it failed' } : metadata },
  };
}

/** A call refused here. It was never sent, so the event log gets no result. */
export function refusalMessage(toolCallId: string, error: string, message: string): ToolMessage {
  return { role: 'tool', tool_call_id: toolCallId, content: cleanJson({ error, message }), result: null };
}

function bounded(content: string): string {
  if (content.length <= MAX_RESULT_CHARS) return content;
  // Cleaned again: the cut may have split a surrogate pair.
  return `${cleanText(content.slice(0, MAX_RESULT_CHARS))}\n[cut off: ${content.length - MAX_RESULT_CHARS} more characters]`;
}
