import { randomBytes } from 'node:crypto';
import type { ModelCalls } from '#actors/effects/model-calls.ts';
import type { Manifest } from '#shared/contracts/manifest/manifest.ts';
import { failureOf, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { TriggerableRoutine } from '../routines.ts';
import { judgementOf, readJudgement } from './judgement.ts';

interface ConditionJudgeDeps {
  modelCalls: Pick<ModelCalls, 'ask'>;
  /** Of the manifest. */
  llms: Pick<Manifest['agent_config']['llms'], 'default' | 'evaluation' | 'evaluation_fallback'>;
  log: Log;
}

/** Asks a model for which of some routines a delivery is; when it gives no verdict, once more, or the fallback if there is one. */
export class ConditionJudge {
  readonly #deps: ConditionJudgeDeps;

  constructor(deps: ConditionJudgeDeps) {
    this.#deps = deps;
  }

  /**
   * The ids of the routines with a condition that holds.
   * @param routines each with conditions
   * @throws `webhook.unmatched` when both tries fail or make no sense
   */
  async judge(webhook: string, routines: readonly TriggerableRoutine[], body: unknown, traceparent: string): Promise<ReadonlySet<string>> {
    const { evaluation, evaluation_fallback: fallback, default: first } = this.#deps.llms;
    const model = evaluation ?? first;
    for (const asked of [model, fallback ?? model]) {
      const applies = await this.#verdictOf(asked, webhook, routines, body, traceparent);
      if (applies !== null) return new Set(routines.filter((_, index) => applies[index]).map(({ id }) => id));
    }
    throw new SwitchyardError('webhook.unmatched', 'the conditions of the routines could not be judged; send the delivery again');
  }

  async #verdictOf(model: string, webhook: string, routines: readonly TriggerableRoutine[], body: unknown, traceparent: string): Promise<boolean[] | null> {
    const { modelCalls, log } = this.#deps;
    try {
      const question = judgementOf(routines, body, randomBytes(12).toString('hex'));
      const verdict = readJudgement(await modelCalls.ask({ ...question, model, traceparent }), routines.length);
      if (verdict === null) log.warn({ webhook, model }, 'a model gave no usable verdict on the conditions of routines');
      return verdict;
    } catch (error) {
      log.warn({ webhook, model, reason: failureOf(error).code }, 'a model could not be asked about the conditions of routines');
      return null;
    }
  }
}
