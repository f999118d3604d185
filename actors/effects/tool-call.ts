import { z } from 'zod';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { ToolWork } from '#bus/messages/tool.ts';
import type { RunScope } from '../kinds/run/run-scope.ts';
import type { RunActions, RunEventBody } from '../kinds/run/types.ts';
import type { StepMessage } from '../tool-loop/types.ts';
import { commonInputs, type EffectKind } from './effect-kind.ts';

const inputs = z.object({
  ...commonInputs,
  bundleHash: z.string(),
  runId: z.string(),
  /** Arguments: in the transcript's message with this call. */
  toolCallId: z.string(),
  toolId: z.string(),
  listHash: z.string(),
});

type Request = Extract<RunActions['effect'], { kind: 'tool-call' }>;

/** One call of a tool. */
export const toolCall: EffectKind<z.infer<typeof inputs>, Request, RunScope, RunEventBody> = {
  name: 'tool-call',
  actor: 'run',
  request: 'tool-call',
  work: 'tool',
  inputs,
  inputsOf: ({ deadlineAtMs, toolCallId, toolId, listHash }, { actorId: runId, bundleHash, traceparent }) => ({
    bundleHash,
    deadlineAtMs,
    traceparent,
    runId,
    toolCallId,
    toolId,
    listHash,
  }),
  async render({ id: effectId, sessionId, actorId, createdAtMs, inputs: given }, republished, { database }): Promise<ToolWork> {
    const { bundleHash, deadlineAtMs, listHash, runId, toolCallId, toolId, traceparent } = given;
    const { rows } = await database.query<{ message: StepMessage }>(SELECT_ASSISTANT_MESSAGES, [runId]);
    const call = rows.flatMap(({ message }) => (message.role === 'assistant' ? (message.tool_calls ?? []) : [])).find(({ id }) => id === toolCallId);
    if (call === undefined) throw new TypeError(`no answer of run ${runId} asks for ${toolCallId}`);
    const args = JSON.parse(call.function.arguments === '' ? '{}' : call.function.arguments) as Record<string, unknown>;
    return {
      v: 1,
      type: 'call',
      effectId,
      sessionId,
      ...actorFields(actorId),
      bundleHash,
      deadlineAtMs,
      createdAtMs,
      republished,
      traceparent,
      toolId,
      listHash,
      arguments: args,
    };
  },
  results: { 'tool.completed': ({ callId, outcome }) => ({ type: 'tool.settled', callId, outcome }) },
  /** `outcome_unknown` for a call that must not be repeated. */
  overdue({ callId }, scope) {
    const reason = scope.isRepeatable(scope.toolIdOf(callId)) ? 'timeout' : 'outcome_unknown';
    return { type: 'tool.settled', callId, outcome: { type: 'failed', reason, message: 'the tool call brought no result in time' } };
  },
};

/** Newest first: models may repeat a call id in a later batch. Matched as text, since `->>` parses the whole message and refuses NUL and lone surrogates. */
const SELECT_ASSISTANT_MESSAGES = `select message from steps where run_id = $1 and message::text like '{"role":"assistant"%' order by seq desc`;
