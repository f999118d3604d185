import type { CommandOf } from '#bus/messages/session.ts';
import { canonicalJson } from '#shared/config/canonical-json.ts';
import { nestingViolation } from '#shared/json-schema.ts';
import type { Violation } from '#shared/schema/violation.ts';
import type { RunReply, StepMessage } from '../kinds/run/types.ts';
import { EMIT_OUTPUT, type RunTool, type RunTools } from './run-tools.ts';
import { refusalMessage } from './tool-message.ts';

/** Calls made per reply, all concurrently. */
const MAX_CALLS_PER_BATCH = 16;
/** Of one call's JSON: a work item carries it. */
const MAX_ARGUMENTS_CHARS = 262_144;
/** Of the output's JSON: a callback carries it. */
const MAX_OUTPUT_CHARS = 1_048_576;
const MAX_FUNCTION_NAME_CHARS = 64;

/** Any other reason is reported as `unknown`. */
const FINISH_REASONS = new Set(['stop', 'tool_calls', 'length', 'content_filter', 'error']);
/** The reply was cut off and may be incomplete. */
const BROKEN_OFF = new Set(['length', 'content_filter', 'error']);

interface About {
  tools: RunTools;
  validateOutput: (value: unknown) => Violation | null;
}

type Completed = CommandOf<'call.completed'>;
/** `text`, to be staged, is the JSON of an object in both cases. */
type Json = { value: Record<string, unknown>; text: string } | { violation: Violation; text: '{}' };
type StepToolCall = NonNullable<Extract<StepMessage, { role: 'assistant' }>['tool_calls']>[number];

/**
 * Validates a model's reply against the routine's tools and output schema. Pure.
 *
 * Tool calls get ids of our own, unique within the run: models omit or repeat theirs. Staged messages fit any upstream: names are
 * `[A-Za-z0-9_-]{1,64}`, arguments a JSON object, and each call has a tool message.
 */
export function readRunReply(completed: Completed, about: About): RunReply {
  const { text, toolCalls, finishReason } = completed;
  if (BROKEN_OFF.has(finishReason)) return { type: 'unusable', finishReason };
  const emitted = toolCalls.findIndex(({ name }) => name === EMIT_OUTPUT);
  if (emitted >= 0) return readOutput(completed, emitted, about);
  if (toolCalls.length > 0) return readCalls(completed, about);
  if (text.trim() === '') return { type: 'unusable', finishReason: FINISH_REASONS.has(finishReason) ? finishReason : 'unknown' };
  return { type: 'text', messages: [{ role: 'assistant', content: text }, REMINDER] };
}

const REMINDER: StepMessage = {
  role: 'user',
  content: `Nobody reads text here. Go on with a function call; when the task is done, call ${EMIT_OUTPUT} with its result.`,
};

/** Drops other calls of the same reply: `emit_output` ends the run. */
function readOutput(completed: Completed, index: number, { validateOutput }: About): RunReply {
  const json = readJson(completed.toolCalls[index]?.arguments ?? '', MAX_OUTPUT_CHARS);
  const violation = 'violation' in json ? json.violation : validateOutput(json.value);
  if (violation === null && 'value' in json) return { type: 'output', output: json.value };
  const fault = violation ?? NO_JSON;
  const call = stepCall(completed, index, EMIT_OUTPUT, json);
  const refusal = refusalMessage(call.id, 'invalid_output', `The output ${fault.message}${pathOf(fault)}. Call ${EMIT_OUTPUT} again with a correct output.`);
  return { type: 'invalid-output', violation: fault, messages: [replyWith(completed, [call]), refusal] };
}

function readCalls(completed: Completed, { tools }: About): RunReply {
  const made = new Set<string>();
  const stepCalls: StepToolCall[] = [];
  const refusals: StepMessage[] = [];
  const reply: Extract<RunReply, { type: 'tools' }> = { type: 'tools', messages: [], calls: [], order: [] };
  for (const [index, { name, arguments: text }] of completed.toolCalls.entries()) {
    const tool = tools.toolOf(name);
    const json = readJson(text, MAX_ARGUMENTS_CHARS);
    const call = stepCall(completed, index, name, json);
    stepCalls.push(call);
    reply.order.push({ toolCallId: call.id, toolId: tool?.toolId ?? call.function.name });
    const refusal = refusalOf(tool, json, made);
    if (refusal !== null) refusals.push(refusalMessage(call.id, ...refusal));
    else if (tool !== null) reply.calls.push({ toolCallId: call.id, toolId: tool.toolId, listHash: tool.listHash });
  }
  reply.messages.push(replyWith(completed, stepCalls), ...refusals);
  return reply;
}

/** Why a call is refused, as code and sentence for the model; null when it is made, which adds it to `made`. */
function refusalOf(tool: RunTool | null, json: Json, made: Set<string>): [error: string, message: string] | null {
  if (tool === null) return ['unknown_function', 'There is no such function.'];
  const violation = 'violation' in json ? json.violation : tool.validate(json.value);
  if (violation !== null) return ['invalid_arguments', `The arguments ${violation.message}${pathOf(violation)}. The call was not made.`];
  const same = canonicalJson([tool.toolId, 'value' in json ? json.value : null]);
  if (made.has(same)) return ['repeated_call', 'The same call stands in this answer already. It is made once.'];
  if (made.size === MAX_CALLS_PER_BATCH) return ['too_many_calls', `At most ${MAX_CALLS_PER_BATCH} calls are made at a time. Ask again for this one.`];
  made.add(same);
  return null;
}

function pathOf({ path }: Violation): string {
  return path === '' ? '' : ` (at ${path})`;
}

const NO_JSON: Violation = { path: '', schemaPath: '#', keyword: 'type', message: 'must be JSON' };

/** Some models send empty arguments to functions without parameters. */
function readJson(text: string, maxChars: number): Json {
  const not = (fault: Partial<Violation>): Json => ({ violation: { ...NO_JSON, ...fault }, text: '{}' });
  if (text.length > maxChars) return not({ keyword: 'maxLength', message: `must not be longer than ${maxChars} characters` });
  if (text.trim() === '') return { value: {}, text: '{}' };
  const value = parse(text);
  if (value === undefined) return not({});
  if (!isObject(value)) return not({ message: 'must be an object' });
  const violation = nestingViolation(value);
  return violation === null ? { value, text } : not(violation);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function replyWith({ text }: Completed, calls: StepToolCall[]): StepMessage {
  return { role: 'assistant', content: text.trim() === '' ? null : text, tool_calls: calls };
}

function stepCall({ callId }: Completed, index: number, name: string, json: Json): StepToolCall {
  const plainName = name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, MAX_FUNCTION_NAME_CHARS);
  return {
    id: toolCallIdOf(callId, index),
    type: 'function',
    function: { name: plainName === '' ? 'unknown' : plainName, arguments: json.text },
  };
}

/** `c`, number of the model call, index in its reply: nine alphanumeric characters, the strictest upstream's format. */
function toolCallIdOf(callId: string, index: number): string {
  const callNo = Number(/\d+$/.exec(callId)?.[0] ?? 0);
  return `c${callNo.toString(36).padStart(4, '0')}${index.toString(36).padStart(4, '0')}`;
}
