import type { z } from 'zod';
import type { ModelCalls } from '#actors/effects/model-calls.ts';
import { itemKey } from '#actors/engine/evaluation/evaluation-keys.ts';
import type { EvaluationStep } from '#actors/engine/evaluation/evaluation-step.ts';
import type { EvaluationRow, EvaluationStore } from '#shared/config/evaluation-store.ts';
import { failureOf, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Slots } from './slots.ts';

export type EvaluateItem = <Item extends object, Result>(
  kind: EvaluationRow['kind'],
  step: EvaluationStep<Item, Result>,
  item: Item,
  schema: z.ZodType<Result>,
) => Promise<Result>;

interface EvaluateItemDeps {
  modelCalls: Pick<ModelCalls, 'ask'>;
  models: { first: string; fallback: string | null };
  store: EvaluationStore;
  slots: Slots;
  traceparent: string;
  signal: AbortSignal;
  log: Log;
}

/** Answers a question from the store, or by a model: the evaluation model, then its fallback, else the same once more. */
export function itemEvaluator({ modelCalls, models, store, slots, traceparent, signal, log }: EvaluateItemDeps): EvaluateItem {
  return async (kind, step, item, schema) => {
    const hash = itemKey(step.template, models.first, item);
    return slots.run(async () => {
      signal.throwIfAborted();
      const stored = schema.safeParse((await store.read([hash])).get(hash)?.result);
      if (stored.success) return stored.data;
      for (const model of [models.first, models.fallback ?? models.first]) {
        signal.throwIfAborted();
        const found = await ask(model);
        if (found === null) continue;
        await store.store({ hash, kind, result: found.result });
        return found.result;
      }
      throw new SwitchyardError('router.provider_unavailable', 'no model gave a usable answer');
    });

    async function ask(model: string) {
      try {
        const answer = step.read(await modelCalls.ask({ ...step.render(item), model, traceparent }), item);
        if (answer.type === 'read') return answer;
        log.warn({ template: step.template, model, reason: answer.reason }, 'a model gave no usable answer about a document');
      } catch (error) {
        log.warn({ template: step.template, model, reason: failureOf(error).code }, 'a model could not be asked about a document');
      }
      return null;
    }
  };
}
