import { z } from 'zod';
import type { RouterCall } from '#bus/messages/router.ts';
import { searchedText } from '../engine/retrieval/searched-text.ts';
import type { TurnActions, TurnEventBody, TurnScope } from '../kinds/turn/types.ts';
import { Unrenderable } from '../runtime/publish/unrenderable.ts';
import { commonInputs, type EffectKind } from './effect-kind.ts';
import { notAwaited } from './not-awaited.ts';
import { turnRowsBelow } from './turn-rows-below.ts';
import { vectorCall } from './vector-call.ts';

const inputs = z.object({
  ...commonInputs,
  bundleHash: z.string(),
  /** Offset of the conversation's last event. */
  upToOffset: z.number(),
  /** So many rows of the turn count: they have the query. */
  staged: z.number(),
});

type Request = Extract<TurnActions['effect'], { kind: 'rewrite-query' | 'embed' | 'search' }> & { kind: 'embed' };

/** The vector of what a turn searches for (ADR 60). Its result is read as that of turn-call.ts. */
export const embed: EffectKind<z.infer<typeof inputs>, Request, TurnScope, TurnEventBody> = {
  name: 'embed',
  actor: 'turn',
  request: 'embed',
  work: 'router.turn',
  inputs,
  inputsOf: ({ deadlineAtMs, staged }, { bundleHash, lastOffset, traceparent }) => ({
    bundleHash,
    upToOffset: lastOffset,
    staged,
    deadlineAtMs,
    traceparent,
  }),
  async render(effect, republished, deps): Promise<RouterCall> {
    const { bundleHash, staged, upToOffset } = effect.inputs;
    const { search } = (await deps.bundleOf(bundleHash)).body.manifest.agent_config;
    if (search?.type !== 'pgvector') throw new TypeError('a vector for a search that the configuration does not have');
    const content = searchedText(await turnRowsBelow(staged, effect.actorId, deps), await deps.histories.upTo(upToOffset, effect));
    if (content === '') throw new Unrenderable('there is nothing to search for');
    const { embedding_model: model, embedding_dimensions: dimensions } = search;
    return vectorCall(effect, { republished, step: { name: 'embed' }, model, dimensions, contents: [content] }, deps);
  },
  results: {},
  overdue: (command, scope) => scope.searchOf(command) ?? notAwaited(command.callId),
};
