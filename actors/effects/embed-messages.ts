import { z } from 'zod';
import type { RouterCall } from '#bus/messages/router.ts';
import { saidText, textSaid } from '../engine/likeness/said-text.ts';
import type { TurnActions, TurnEventBody, TurnScope } from '../kinds/turn/types.ts';
import { Unrenderable } from '../runtime/publish/unrenderable.ts';
import { commonInputs, type EffectKind } from './effect-kind.ts';
import { notAwaited } from './not-awaited.ts';
import { vectorCall } from './vector-call.ts';

const inputs = z.object({
  ...commonInputs,
  bundleHash: z.string(),
  /** Offset of the conversation's last event. */
  upToOffset: z.number(),
  /** In the order of the vectors. */
  texts: z.array(saidText).readonly(),
});

type Request = Extract<TurnActions['effect'], { kind: 'embed-messages' }>;

/** Vectors of what was said, to be compared with those of the agent's documents. Its result is read as that of turn-call.ts. */
export const embedMessages: EffectKind<z.infer<typeof inputs>, Request, TurnScope, TurnEventBody> = {
  name: 'embed-messages',
  actor: 'turn',
  request: 'embed-messages',
  work: 'router.turn',
  inputs,
  inputsOf: ({ deadlineAtMs, texts }, { bundleHash, lastOffset, traceparent }) => ({
    bundleHash,
    upToOffset: lastOffset,
    texts,
    deadlineAtMs,
    traceparent,
  }),
  async render(effect, republished, deps): Promise<RouterCall> {
    const { bundleHash, texts, upToOffset } = effect.inputs;
    const { search } = (await deps.bundleOf(bundleHash)).body.manifest.agent_config;
    if (search?.type !== 'pgvector') throw new TypeError('vectors for a configuration without embedding_model');
    const history = await deps.histories.upTo(upToOffset, effect);
    const contents = texts.map((which) => textSaid(which, history));
    if (contents.includes('')) throw new Unrenderable('there is nothing to compare');
    const { embedding_model: model, embedding_dimensions: dimensions } = search;
    return vectorCall(effect, { republished, step: { name: 'embed-messages' }, model, dimensions, contents }, deps);
  },
  results: {},
  overdue: (command, scope) => scope.likenessOf(command) ?? notAwaited(command.callId),
};
