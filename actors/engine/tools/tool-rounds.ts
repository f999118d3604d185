import { z } from 'zod';
import type { InferAnswer } from './infer-answer.ts';
import { callsToMake, type StagedCall, type ToolCallRequest } from './tool-batch.ts';
import { type InferItem, planInference, reasonKeyOf, type ToolListsByServer, type TurnToolsInput } from './turn-tools.ts';

/** The tools that a call judges, by reference: effects and rows store it, so fields are only added. */
export const inferReference = z.object({
  tools: z.array(z.object({ toolId: z.string(), reasons: z.array(z.object({ by: z.enum(['policy', 'step']), id: z.string() })) })),
  /** By server: hash of its list. */
  lists: z.record(z.string(), z.string()),
});
type InferReference = z.infer<typeof inferReference>;

/** Where a call's arguments stand: the row of an inference, and the place in its answer. */
export interface ArgumentsReference {
  key: string;
  index: number;
}

export type PlannedCall = ToolCallRequest & { key: string; from: ArgumentsReference; isRepeatable: boolean };

/** What the tools of one iteration need next. */
export type ToolRound =
  | { type: 'infer'; requests: { key: string; reference: InferReference }[] }
  | { type: 'call'; calls: PlannedCall[] }
  /** `executed`: in the order of inference. */
  | { type: 'done'; executed: StagedCall[] };

interface ToolRoundInput {
  /** From 1. */
  iteration: number;
  /** Matched so far in this turn. */
  policies: TurnToolsInput['policies'];
  steps: TurnToolsInput['steps'];
  lists: ToolListsByServer;
  /** Of this turn since its beginning, by key. */
  inferences: ReadonlyMap<string, { reference: InferReference; answer: InferAnswer }>;
  /** Calls that have settled, by key. */
  settled: ReadonlyMap<string, StagedCall>;
  /** Calls from before the turn began again, when a message joined it. */
  earlier: readonly StagedCall[];
}

/** What comes next for the tools of an iteration, from rows alone: equal rows give an equal round, in whatever order they arrived. */
export function toolRound({ iteration, policies, steps, lists, inferences, settled, earlier }: ToolRoundInput): ToolRound {
  const before = [...inferences].filter(([key]) => iterationOf(key) < iteration);
  const inferred = new Set(before.flatMap(([, { reference }]) => reference.tools.flatMap(({ reasons }) => reasons.map(reasonKeyOf))));
  const { groups } = planInference({ policies, steps, lists, inferred });
  const requests = groups.map((group, index) => ({ key: `infer-${iteration}-${index + 1}`, reference: referenceOf(group) }));
  const open = requests.filter(({ key }) => !inferences.has(key));
  if (open.length > 0) return { type: 'infer', requests: open };
  const answers = requests.flatMap(({ key }) => {
    const row = inferences.get(key);
    return row === undefined ? [] : [{ key, answer: row.answer }];
  });
  const made = [...earlier, ...[...settled].filter(([key]) => iterationOf(key) < iteration).map(([, call]) => call)];
  const calls = callsToMake(answers, made).map((call, index): PlannedCall => {
    return { ...call, key: `tool-${iteration}-${index + 1}`, isRepeatable: isRepeatable(call.toolId, lists) };
  });
  const missing = calls.filter(({ key }) => !settled.has(key));
  if (missing.length > 0) return { type: 'call', calls: missing };
  return { type: 'done', executed: calls.flatMap(({ key }) => settled.get(key) ?? []) };
}

/** The number in a key of an inference or a call. */
export function iterationOf(key: string): number {
  return Number(/^[a-z]+-(\d+)-/.exec(key)?.[1] ?? 0);
}

/** The place of a call in its batch, from 1. */
export function placeOf(key: string): number {
  return Number(/\d+$/.exec(key)?.[0] ?? 0);
}

function referenceOf({ tools, lists }: InferItem): InferReference {
  return {
    tools: tools.map(({ toolId, reasons }) => ({ toolId, reasons: reasons.map(({ by, id }) => ({ by, id })) })),
    lists: Object.fromEntries(Object.entries(lists).map(([server, { hash }]) => [server, hash])),
  };
}

function isRepeatable(toolId: string, lists: ToolListsByServer): boolean {
  return Object.entries(lists).some(([server, { tools }]) => tools.some(({ name, repeatable }) => repeatable && `${server}:${name}` === toolId));
}
