import { z } from 'zod';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { SEARCH_VERSION, type ToolWork, VECTOR_SEARCH_VERSION } from '#bus/messages/tool.ts';
import { searchInput } from '../engine/retrieval/search-input.ts';
import { searchPlanOf } from '../engine/retrieval/search-plan.ts';
import { searchedText, searchedVector } from '../engine/retrieval/searched-text.ts';
import type { TurnActions, TurnEventBody, TurnScope } from '../kinds/turn/types.ts';
import { commonInputs, type EffectKind } from './effect-kind.ts';
import { notAwaited } from './not-awaited.ts';
import { turnRowsBelow } from './turn-rows-below.ts';

const inputs = z.object({
  ...commonInputs,
  bundleHash: z.string(),
  /** Offset of the conversation's last event. */
  upToOffset: z.number(),
  /** So many rows of the turn count: they have the query and its vector. Absent from rows of releases before, whose searches need none. */
  staged: z.number().optional(),
});

type Request = Extract<TurnActions['effect'], { kind: 'rewrite-query' | 'embed' | 'search' }> & { kind: 'search' };

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
    const { bundleHash, deadlineAtMs, traceparent, upToOffset, staged = 0 } = given;
    const { manifest } = (await deps.bundleOf(bundleHash)).body;
    const plan = searchPlanOf(manifest.agent_config.search);
    if (plan === null) throw new TypeError('a search that the configuration has no use for');
    const history = await deps.histories.upTo(upToOffset, effect);
    const item = { type: 'search' as const, effectId, sessionId, ...actorFields(actorId), bundleHash, deadlineAtMs, createdAtMs, republished, traceparent };
    if (plan.first === 'search') return { v: SEARCH_VERSION, ...item, ...searchInput(history, plan.maxMessages) };
    const rows = await turnRowsBelow(staged, actorId, deps);
    const vector = searchedVector(rows);
    if (vector === null) throw new TypeError(`the turn ${actorId} has no vector to search for`);
    return { v: VECTOR_SEARCH_VERSION, ...item, query: searchedText(rows, history), messages: [], vector };
  },
  results: {},
  overdue: (command, scope) => scope.searchOf(command) ?? notAwaited(command.callId),
};
