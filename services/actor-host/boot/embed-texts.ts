import type { z } from 'zod';
import type { ModelCalls, TextsToEmbed } from '#actors/effects/model-calls.ts';
import type { vectorsResult } from '#actors/engine/evaluation/evaluation-set.ts';
import { vectorsIn } from '#actors/engine/likeness/vector-table.ts';
import { failureOf, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Slots } from './slots.ts';

/** @throws `router.provider_unavailable` when no call brings vectors of the texts */
export type EmbedTexts = (about: Omit<TextsToEmbed, 'traceparent'>) => Promise<z.infer<typeof vectorsResult>>;

interface TextEmbedderDeps {
  modelCalls: Pick<ModelCalls, 'embed'>;
  slots: Slots;
  traceparent: string;
  signal: AbortSignal;
  log: Log;
}

/** As many as for questions. There is no other model: vectors of two models can't be compared. */
const TRIES = 2;

/** Has the vectors of a batch of texts made, by one call. */
export function textEmbedder({ modelCalls, slots, traceparent, signal, log }: TextEmbedderDeps): EmbedTexts {
  return (about) =>
    slots.run(async () => {
      for (let tries = 0; tries < TRIES; tries += 1) {
        signal.throwIfAborted();
        try {
          const made = await modelCalls.embed({ ...about, traceparent });
          const vectors = Buffer.concat(made.map((vector) => Buffer.from(vector, 'base64'))).toString('base64');
          if (vectorsIn(vectors, about.texts.length, about.dimensions) !== null) return { vectors };
          log.warn({ model: about.model }, 'a model gave vectors of other dimensions than embedding_dimensions, or with numbers that are not finite');
        } catch (error) {
          log.warn({ model: about.model, reason: failureOf(error).code }, 'a model could not be asked for vectors of texts');
        }
      }
      throw new SwitchyardError('router.provider_unavailable', 'no call brought vectors of the texts');
    });
}
