import type { CommandOf } from '#bus/messages/session.ts';
import type { Violation } from '#shared/schema/violation.ts';
import type { RunReply } from '../kinds/run/types.ts';
import type { StepMessage } from '../tool-loop/types.ts';
import type { CallableTools } from './callable-tools.ts';
import { NO_JSON, readJsonObject } from './read-json-object.ts';
import { pathOf, readToolCalls, replyWith, stepCall } from './read-tool-calls.ts';
import { EMIT_OUTPUT } from './run-tools.ts';
import { refusalMessage } from './tool-message.ts';

/** Of the output's JSON: a callback carries it. */
const MAX_OUTPUT_CHARS = 1_048_576;

/** Any other reason is reported as `unknown`. */
const FINISH_REASONS = new Set(['stop', 'tool_calls', 'length', 'content_filter', 'error']);
/** The reply was cut off and may be incomplete. */
const BROKEN_OFF = new Set(['length', 'content_filter', 'error']);

interface About {
  tools: CallableTools;
  validateOutput: (value: unknown) => Violation | null;
}

type Completed = CommandOf<'call.completed'>;

/** Validates a model's reply against the routine's tools and output schema. Pure. */
export function readRunReply(completed: Completed, about: About): RunReply {
  const { text, toolCalls, finishReason } = completed;
  if (BROKEN_OFF.has(finishReason)) return { type: 'unusable', finishReason };
  const emitted = toolCalls.findIndex(({ name }) => name === EMIT_OUTPUT);
  if (emitted >= 0) return readOutput(completed, emitted, about);
  if (toolCalls.length > 0) return readToolCalls(completed, about.tools);
  if (text.trim() === '') return { type: 'unusable', finishReason: FINISH_REASONS.has(finishReason) ? finishReason : 'unknown' };
  return { type: 'text', messages: [{ role: 'assistant', content: text }, REMINDER] };
}

const REMINDER: StepMessage = {
  role: 'user',
  content: `Nobody reads text here. Go on with a function call; when the task is done, call ${EMIT_OUTPUT} with its result.`,
};

/** Drops other calls of the same reply: `emit_output` ends the run. */
function readOutput(completed: Completed, index: number, { validateOutput }: About): RunReply {
  const json = readJsonObject(completed.toolCalls[index]?.arguments ?? '', MAX_OUTPUT_CHARS);
  const violation = 'violation' in json ? json.violation : validateOutput(json.value);
  if (violation === null && 'value' in json) return { type: 'output', output: json.value };
  const fault = violation ?? NO_JSON;
  const call = stepCall(completed, index, EMIT_OUTPUT, json);
  const refusal = refusalMessage(call.id, 'invalid_output', `The output ${fault.message}${pathOf(fault)}. Call ${EMIT_OUTPUT} again with a correct output.`);
  return { type: 'invalid-output', violation: fault, messages: [replyWith(completed, [call]), refusal] };
}
