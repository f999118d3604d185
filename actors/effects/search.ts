import { z } from 'zod';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { TOOL_WORK_VERSION, type ToolWork } from '#bus/messages/tool.ts';
import { searchInput } from '../engine/retrieval/search-input.ts';
import { searchPlanOf } from '../engine/retrieval/search-plan.ts';
import type { TurnActions, TurnEventBody, TurnScope } from '../kinds/turn/types.ts';
import { commonInputs, type EffectKind } from './effect-kind.ts';
import { notAwaited } from './not-awaited.ts';
import { turnRowsBelow } from './turn-rows-below.ts';

const inputs = z.object({
  ...commonInputs,
  bundleHash: z.string(),
  /** Offset of the conversation's last event. */
  upToOffset: z.number(),
  /** So many rows of the turn count: one of them may have the query. */
  staged: z.number(),
});

type Request = Extract<TurnActions['effect'], { kind: 'search' }>;

/** Retrieval for a turn: reads only, so a worker may do it again. Its result is read as that of turn-tool-call.ts. */
export const search: EffectKind<z.infer<typeof inputs>, Request, TurnScope, TurnEventBody> = {
  name: 'search',
  actor: 'turn',
  request: 'search',
  work: 'tool',
  inputs,
  inputsOf: ({ deadlineAtMs, staged }, { bundleHash, lastOffset, traceparent }) => ({
    bundleHash,
    upToOffset: lastOffset,
    staged,
    deadlineAtMs,
    traceparent,
  }),
  async render(effect, republished, deps): Promise<ToolWork> {
    const { id: effectId, sessionId, actorId, createdAtMs, inputs: given } = effect;
    const { bundleHash, deadlineAtMs, staged, traceparent, upToOffset } = given;
    const { manifest, documents } = (await deps.bundleOf(bundleHash)).body;
    const plan = searchPlanOf(manifest.agent_config.search, documents);
    if (plan === null) throw new TypeError('a search that the configuration has no use for');
    const rewritten = (await turnRowsBelow(staged, actorId, deps)).findLast((row) => row.kind === 'rewrite-query');
    const input = searchInput(await deps.histories.upTo(upToOffset, effect), plan.maxMessages, rewritten?.query ?? null);
    const ids = { effectId, sessionId, ...actorFields(actorId), bundleHash };
    return { v: TOOL_WORK_VERSION, type: 'search', ...ids, deadlineAtMs, createdAtMs, republished, traceparent, ...input };
  },
  results: {},
  overdue: (command, scope) => scope.searchOf(command) ?? notAwaited(command.callId),
};
