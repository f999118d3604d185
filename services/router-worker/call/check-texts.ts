import { failureOf } from '#shared/errors/switchyard-error.ts';
import type { PluginEngines } from '../pipeline/engines.ts';
import { moderation } from '../pipeline/moderation.ts';
import { stagedCall } from '../pipeline/pipeline.ts';
import type { Catalogue } from './candidates.ts';
import type { CallResult, Execution } from './execution.ts';
import { stageContextOf } from './stage-context.ts';

interface CheckDeps {
  catalogue: Catalogue;
  /** Absent: none is configured. */
  engines?: PluginEngines;
}

/**
 * Moderation alone: the texts of a call that asks for no model. Nothing is routed, and nothing is billed.
 * @returns completed, without text, where nothing is flagged; else, and where the texts can't be checked, the failure that a call of a model has. It never throws
 */
export async function checkTexts({ call, surface, signal, nowMs }: Execution, deps: CheckDeps): Promise<CallResult> {
  const context = stageContextOf({ surface, signal, nowMs, candidatesOf: () => [] }, deps);
  try {
    signal.throwIfAborted();
    await stagedCall(moderation.request === undefined ? [] : [moderation.request], call.request, context);
  } catch (error) {
    return { type: 'failed', failure: failureOf(error) };
  }
  const usage = { promptTokens: 0, completionTokens: 0 };
  return { type: 'completed', text: '', toolCalls: [], model: '', provider: deps.engines?.moderation?.name ?? '', finishReason: 'stop', usage };
}
