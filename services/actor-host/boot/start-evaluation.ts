import { type ModelCallSettings, ModelCalls } from '#actors/effects/model-calls.ts';
import type { Bus } from '#bus/bus.ts';
import type { Clock } from '#shared/clock.ts';
import { evaluationStore } from '#shared/config/evaluation-store.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { startDocumentEvaluation } from './evaluate-documents.ts';

/** A model may read a long routine, and queue behind other work. */
const waits = { modelCallMs: 120_000, modelSilenceMs: 2_000, subscribedMs: 1_000 };

interface EvaluationDeps {
  config: ModelCallSettings & { evaluationParallelism: number };
  bundle: Bundle;
  bus: Bus;
  database: Database;
  clock: Clock;
  log: Log;
}

/** Begins the evaluation of the agent's documents, which readiness does not wait for. */
export function startEvaluation({ config, bundle, bus, database, clock, log }: EvaluationDeps): ReturnType<typeof startDocumentEvaluation> {
  const modelCalls = new ModelCalls('evaluation', { bus, settings: config, clock, waits, log });
  return startDocumentEvaluation({ bundle, modelCalls, parallelism: config.evaluationParallelism, database, store: evaluationStore(database), log });
}
