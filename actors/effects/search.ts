import { z } from 'zod';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { TOOL_WORK_VERSION, type ToolWork } from '#bus/messages/tool.ts';
import { searchInput } from '../engine/retrieval/search-input.ts';
import { searchPlanOf } from '../engine/retrieval/search-plan.ts';
import type { TurnActions, TurnEventBody, TurnScope } from '../kinds/turn/types.ts';
import { commonInputs, type EffectKind } from './effect-kind.ts';
import { notAwaited } from './not-awaited.ts';

const inputs = z.object({
  ...commonInputs,
  bundleHash: z.string(),
  /** Offset of the conversation's last event. */
  upToOffset: z.number(),
});

type Request = Extract<TurnActions['effect'], { kind: 'search' }>;

/** Retrieval for a turn: reads only, so a worker may do it again. Its result is read as that of turn-tool-call.ts. */
export const search: EffectKind<z.infer<typeof inputs>, Request, TurnScope, TurnEventBody> = {
  name: 'search',
  actor: 'turn',
  request: 'search',
  work: 'tool',
  inputs,
  inputsOf: ({ deadlineAtMs }, { bundleHash, lastOffset, traceparent }) => ({
    bundleHash,
    upToOffset: lastOffset,
    deadlineAtMs,
    traceparent,
  }),
  async render(effect, republished, deps): Promise<ToolWork> {
    const { id: effectId, sessionId, actorId, createdAtMs, inputs: given } = effect;
    const { bundleHash, deadlineAtMs, traceparent, upToOffset } = given;
    const { manifest } = (await deps.bundleOf(bundleHash)).body;
    const plan = searchPlanOf(manifest.agent_config.search);
    if (plan === null) throw new TypeError('a search that the configuration has no use for');
    const input = searchInput(await deps.histories.upTo(upToOffset, effect), plan.maxMessages);
    const ids = { effectId, sessionId, ...actorFields(actorId), bundleHash };
    return { v: TOOL_WORK_VERSION, type: 'search', ...ids, deadlineAtMs, createdAtMs, republished, traceparent, ...input };
  },
  results: {},
  overdue: (command, scope) => scope.searchOf(command) ?? notAwaited(command.callId),
};
