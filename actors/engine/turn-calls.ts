import type { z } from 'zod';
import { type CheckReference, checkReference, checkReply } from './composition/check-reply.ts';
import type { EngineDocuments } from './engine-documents.ts';
import { type MatchBatch, matchBatch, matchItems } from './policies/match-batch.ts';
import { matchSteps } from './policies/match-steps.ts';
import { type RoutineCall, routineCall } from './routines/routine-calls.ts';
import { routineItem } from './routines/routine-items.ts';
import { checkBacktrack } from './routines/steps/check-backtrack.ts';
import { nextStep } from './routines/steps/next-step.ts';
import { selectNode } from './routines/steps/select-node.ts';
import type { EngineStep, StepView } from './step.ts';
import { inferTools } from './tools/infer-tools.ts';
import { inferReference } from './tools/tool-rounds.ts';
import { itemOf, noTools, type ToolsOf } from './tools/turn-tools.ts';

type AnyStep = EngineStep<never, unknown>;

/** A question to a model about items, ready to be rendered and read. */
interface Question {
  template: string;
  render(view: StepView): ReturnType<AnyStep['render']>;
  read(reply: Parameters<AnyStep['read']>[0]): ReturnType<AnyStep['read']>;
}

/** A kind of structured model call of a turn. Its reference names the items by their ids, as effects and rows store it. */
interface TurnCallKind {
  /** @throws when the reference does not fit the documents */
  /** @param toolsOf the lists that the reference names */
  questionOf(reference: unknown, documents: EngineDocuments, toolsOf?: ToolsOf): Question;
}

/** By the kind of the row that its answer becomes. */
export const turnCalls = {
  match: kindOf(matchBatch, (batch: MatchBatch, documents) =>
    questionAbout(matchSteps[batch.class], matchItems(batch, documents, documents.policyEvaluations)),
  ),
  routine: kindOf(routineCall, (call: RoutineCall, { routineModels }) => {
    const model = routineModels.find(({ routine }) => routine.id === call.routineId);
    if (model === undefined) throw new TypeError(`the configuration lacks the routine ${call.routineId}`);
    const item = routineItem(model, call);
    switch (call.kind) {
      case 'next-step':
        return questionAbout(nextStep, item);
      case 'backtrack':
        return questionAbout(checkBacktrack, item);
      case 'select-node':
        return questionAbout(selectNode, item);
    }
  }),
  'check-reply': kindOf(checkReference, ({ policyIds }: CheckReference, documents) =>
    questionAbout(checkReply, matchItems({ id: 'check-reply', class: 'actionable', policyIds }, documents, documents.policyEvaluations)),
  ),
  'infer-tools': kindOf(inferReference, (reference, documents, toolsOf) => questionAbout(inferTools, itemOf(reference, documents, toolsOf))),
} as const satisfies Record<string, TurnCallKind>;

export type TurnCallName = keyof typeof turnCalls;

/** One model call by reference. */
export interface CallRequest {
  kind: TurnCallName;
  /** Of its prompt. */
  template: string;
  /** Unique among the calls since the turn's beginning; the same from each decision on the same rows. */
  key: string;
  reference: unknown;
  /** The set of evaluations whose texts the prompt has; null: those of the documents. */
  evaluations: string | null;
}

export function requestOf(kind: TurnCallName, key: string, reference: unknown, documents: EngineDocuments, toolsOf: ToolsOf = noTools): CallRequest {
  const { template } = turnCalls[kind].questionOf(reference, documents, toolsOf);
  return { kind, template, key, reference, evaluations: documents.evaluationSet };
}

function kindOf<Reference>(schema: z.ZodType<Reference>, ask: (reference: Reference, documents: EngineDocuments, toolsOf: ToolsOf) => Question): TurnCallKind {
  return { questionOf: (reference, documents, toolsOf = noTools) => ask(schema.parse(reference), documents, toolsOf) };
}

function questionAbout<Item, Answer>(step: EngineStep<Item, Answer>, item: Item): Question {
  return { template: step.template, render: (view) => step.render(view, item), read: (reply) => step.read(reply, item) };
}
