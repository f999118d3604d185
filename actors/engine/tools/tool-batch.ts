import { z } from 'zod';
import { canonicalJson } from '#shared/config/canonical-json.ts';
import type { EventContent } from '#shared/contracts/agent/conversation-event.ts';
import type { ToolOutcome } from '../../tool-loop/types.ts';
import { toolMessage } from '../tool-message.ts';
import type { InferAnswer, ToolOutcomeOf } from './infer-answer.ts';
import { controlOf, toolControl } from './tool-control.ts';

/** Calls that a turn makes at a time, all concurrently; further ones are left out. */
const MAX_CALLS_PER_BATCH = 16;

export type ToolCallRequest = Omit<ToolOutcomeOf<'needs_to_run'>, 'outcome'>;

/** A tool call of a turn that has settled, as it is staged: it outlives releases, so fields are only added. */
export const stagedCall = z.object({
  toolId: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  hasFailed: z.boolean(),
  /** `data` is what models see; `metadata` they do not. */
  result: z.object({ data: z.unknown(), metadata: z.record(z.string(), z.unknown()) }),
  control: toolControl,
});
export type StagedCall = z.infer<typeof stagedCall>;

/**
 * The calls of a batch, in the order in which they were inferred. What was called in this turn with the same arguments is not called again.
 * @param made calls of this turn, whatever became of them
 * @returns `from`: the answer, and the place in it
 */
export function callsToMake(
  answers: readonly { key: string; answer: InferAnswer }[],
  made: readonly Pick<ToolCallRequest, 'toolId' | 'arguments'>[],
): (ToolCallRequest & { from: { key: string; index: number } })[] {
  const known = new Set(made.map(keyOf));
  const calls: (ToolCallRequest & { from: { key: string; index: number } })[] = [];
  for (const { key, answer } of answers) {
    for (const [index, tool] of answer.tools.entries()) {
      if (tool.outcome !== 'needs_to_run' || known.has(keyOf(tool)) || calls.length === MAX_CALLS_PER_BATCH) continue;
      known.add(keyOf(tool));
      calls.push({ toolId: tool.toolId, listHash: tool.listHash, arguments: tool.arguments, from: { key, index } });
    }
  }
  return calls;
}

function keyOf({ toolId, arguments: args }: Pick<ToolCallRequest, 'toolId' | 'arguments'>): string {
  return canonicalJson([toolId, args]);
}

/** @param isTrusted of the tool's server */
export function stagedCallOf({ toolId, arguments: args }: Pick<ToolCallRequest, 'toolId' | 'arguments'>, outcome: ToolOutcome, isTrusted: boolean): StagedCall {
  // The message's result is what the event log gets in runs, too.
  const { result } = toolMessage('', outcome);
  const control = controlOf(outcome.type === 'result' ? outcome.metadata : {}, isTrusted);
  const hasFailed = outcome.type === 'failed' || outcome.isError;
  return { toolId, arguments: args, hasFailed, result: result ?? { data: null, metadata: {} }, control };
}

/**
 * One event for a batch, failures included.
 * @param calls in the order of their inference
 * @returns null: nothing of it stays in the log
 */
export function toolEventOf(calls: readonly StagedCall[]): Extract<EventContent, { kind: 'tool' }> | null {
  const kept = calls.filter(({ control }) => control.lifespan === 'session');
  if (kept.length === 0) return null;
  return { kind: 'tool', tool_calls: kept.map(({ toolId, arguments: args, result }) => ({ tool_id: toolId, arguments: args, result })) };
}

/**
 * The executed tools for which policies are matched again: those that the manifest names, whatever became of their calls, and those of a routine's current
 * step.
 */
export function toolsToReevaluate(calls: readonly StagedCall[], named: readonly string[], ofSteps: readonly string[]): string[] {
  const forcing = new Set([...named, ...ofSteps]);
  return [...new Set(calls.map(({ toolId }) => toolId))].filter((toolId) => forcing.has(toolId));
}
