import { z } from 'zod';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { ToolWork } from '#bus/messages/tool.ts';
import { carriedContext } from '#shared/telemetry/carried-context.ts';
import type { TurnActions, TurnEventBody, TurnScope } from '../kinds/turn/types.ts';
import { commonInputs, type EffectKind } from './effect-kind.ts';
import { notAwaited } from './not-awaited.ts';
import { turnRowsBelow } from './turn-rows-below.ts';

const inputs = z.object({
  ...commonInputs,
  bundleHash: z.string(),
  toolId: z.string(),
  listHash: z.string(),
  /** The arguments: in the row of an inference, by its key and the place in its answer. */
  from: z.object({ key: z.string(), index: z.number() }),
  /** So many rows of the turn count. */
  staged: z.number(),
  /** For the tool server. Absent: there is nothing, or a row of a release before. */
  carried: carriedContext.optional(),
});

type Request = Extract<TurnActions['effect'], { kind: 'tool-call' }>;

/** One call of a tool, in a turn. Its effect is the intent: a call that must not happen twice is claimed by the worker before it is made. */
export const turnToolCall: EffectKind<z.infer<typeof inputs>, Request, TurnScope, TurnEventBody> = {
  name: 'turn-tool-call',
  actor: 'turn',
  request: 'tool-call',
  work: 'tool',
  inputs,
  inputsOf: ({ deadlineAtMs, staged, toolId, listHash, from }, { bundleHash, traceparent, carried }) => ({
    bundleHash,
    toolId,
    listHash,
    from,
    staged,
    deadlineAtMs,
    traceparent,
    ...(carried && { carried }),
  }),
  async render({ id: effectId, sessionId, actorId, createdAtMs, inputs: given }, republished, deps): Promise<ToolWork> {
    const { bundleHash, deadlineAtMs, toolId, listHash, from, staged, traceparent, carried } = given;
    const rows = await turnRowsBelow(staged, actorId, deps);
    const inference = rows.findLast((row) => row.kind === 'infer-tools' && row.key === from.key);
    const tool = inference?.kind === 'infer-tools' ? inference.answer.tools[from.index] : undefined;
    if (tool?.outcome !== 'needs_to_run') throw new TypeError(`no inference of the turn ${actorId} has a call ${from.key}, ${from.index}`);
    const ids = { effectId, sessionId, ...actorFields(actorId), bundleHash };
    const call = { v: 1, type: 'call', ...ids, deadlineAtMs, createdAtMs, republished, traceparent, toolId, listHash, arguments: tool.arguments } as const;
    return carried === undefined ? call : { ...call, carried };
  },
  results: {
    /** Of searches (search.ts), too. */
    'tool.completed': (command, scope) => scope.searchOf(command) ?? scope.toolOf(command.callId, command.outcome) ?? notAwaited(command.callId),
  },
  /** Its item or its claim may be lost: the turn goes on without a result. */
  overdue: ({ callId }, scope) => scope.overdueOf(callId) ?? notAwaited(callId),
};
