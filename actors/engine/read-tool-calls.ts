import type { CommandOf } from '#bus/messages/session.ts';
import { canonicalJson } from '#shared/config/canonical-json.ts';
import type { Violation } from '#shared/schema/violation.ts';
import type { StepMessage, ToolsReply } from '../tool-loop/types.ts';
import type { CallableTool, CallableTools } from './callable-tools.ts';
import { type JsonObject, readJsonObject } from './read-json-object.ts';
import { refusalMessage } from './tool-message.ts';

/** Calls made per reply, all concurrently. */
const MAX_CALLS_PER_BATCH = 16;
/** Of one call's JSON: a work item carries it. */
const MAX_ARGUMENTS_CHARS = 262_144;
const MAX_FUNCTION_NAME_CHARS = 64;

type Completed = CommandOf<'call.completed'>;
type StepToolCall = NonNullable<Extract<StepMessage, { role: 'assistant' }>['tool_calls']>[number];

/**
 * Validates the tool calls of a model's reply. Pure.
 *
 * Tool calls get ids of our own, unique within the actor: models omit or repeat theirs. Staged messages fit any upstream: names are
 * `[A-Za-z0-9_-]{1,64}`, arguments a JSON object, and each call has a tool message.
 */
export function readToolCalls(completed: Completed, tools: CallableTools): ToolsReply {
  const made = new Set<string>();
  const stepCalls: StepToolCall[] = [];
  const refusals: StepMessage[] = [];
  const reply: ToolsReply = { type: 'tools', messages: [], calls: [], order: [] };
  for (const [index, { name, arguments: text }] of completed.toolCalls.entries()) {
    const tool = tools.toolOf(name);
    const json = readJsonObject(text, MAX_ARGUMENTS_CHARS);
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
function refusalOf(tool: CallableTool | null, json: JsonObject, made: Set<string>): [error: string, message: string] | null {
  if (tool === null) return ['unknown_function', 'There is no such function.'];
  const violation = 'violation' in json ? json.violation : tool.validate(json.value);
  if (violation !== null) return ['invalid_arguments', `The arguments ${violation.message}${pathOf(violation)}. The call was not made.`];
  const same = canonicalJson([tool.toolId, 'value' in json ? json.value : null]);
  if (made.has(same)) return ['repeated_call', 'The same call stands in this answer already. It is made once.'];
  if (made.size === MAX_CALLS_PER_BATCH) return ['too_many_calls', `At most ${MAX_CALLS_PER_BATCH} calls are made at a time. Ask again for this one.`];
  made.add(same);
  return null;
}

/** For a sentence to the model: where a value breaks its schema. */
export function pathOf({ path }: Violation): string {
  return path === '' ? '' : ` (at ${path})`;
}

export function replyWith({ text }: Completed, calls: StepToolCall[]): StepMessage {
  return { role: 'assistant', content: text.trim() === '' ? null : text, tool_calls: calls };
}

export function stepCall({ callId }: Completed, index: number, name: string, json: JsonObject): StepToolCall {
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
