import type { z } from 'zod';
import { checkReference, checkReply } from './composition/check-reply.ts';
import type { EngineDocuments } from './engine-documents.ts';
import { matchBatch, matchItems } from './policies/match-batch.ts';
import { matchSteps } from './policies/match-steps.ts';
import { type RoutineAnswer, type RoutineCall, routineCall } from './routines/routine-calls.ts';
import { type RoutineItem, routineItem } from './routines/routine-items.ts';
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
  /** Null: the template is not known. */
  renderingOf(template: string): Question['render'] | null;
  read(reply: Parameters<AnyStep['read']>[0]): ReturnType<AnyStep['read']>;
}

/** A kind of structured model call of a turn. Its reference names the items by their ids, as effects and rows store it. */
interface TurnCallKind<Reference> {
  /** Of the prompt, without the question itself: decisions name it for each call that they need. */
  templateOf(reference: Reference): string;
  /**
   * @param toolsOf the lists that the reference names
   * @throws when the reference does not fit the documents
   */
  questionOf(reference: unknown, documents: EngineDocuments, toolsOf?: ToolsOf): Question;
}

const routineSteps: Readonly<Record<RoutineCall['kind'], EngineStep<RoutineItem, RoutineAnswer>>> = {
  'next-step': nextStep,
  backtrack: checkBacktrack,
  'select-node': selectNode,
};

/** By the kind of the row that its answer becomes. */
export const turnCalls = {
  match: kindOf(
    matchBatch,
    (batch) => matchSteps[batch.class],
    (batch, documents) => matchItems(batch, documents, documents.policyEvaluations),
  ),
  routine: kindOf(
    routineCall,
    ({ kind }) => routineSteps[kind],
    (call, { routineModels }) => {
      const model = routineModels.find(({ routine }) => routine.id === call.routineId);
      if (model === undefined) throw new TypeError(`the configuration lacks the routine ${call.routineId}`);
      return routineItem(model, call);
    },
  ),
  'check-reply': kindOf(
    checkReference,
    () => checkReply,
    ({ policyIds }, documents) => matchItems({ id: 'check-reply', class: 'actionable', policyIds }, documents, documents.policyEvaluations),
  ),
  'infer-tools': kindOf(inferReference, () => inferTools, itemOf),
} as const;

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

/** The reference of a call, by its kind. */
type ReferenceOf<Name extends TurnCallName> = Parameters<(typeof turnCalls)[Name]['templateOf']>[0];

export function requestOf<Name extends TurnCallName>(
  kind: Name,
  { key, reference }: { key: string; reference: ReferenceOf<Name> },
  { evaluationSet: evaluations }: Pick<EngineDocuments, 'evaluationSet'>,
): CallRequest {
  const { templateOf } = turnCalls[kind] as TurnCallKind<ReferenceOf<Name>>;
  return { kind, template: templateOf(reference), key, reference, evaluations };
}

function kindOf<Reference, Item, Answer>(
  schema: z.ZodType<Reference>,
  stepOf: (reference: Reference) => EngineStep<Item, Answer>,
  itemOf: (reference: Reference, documents: EngineDocuments, toolsOf: ToolsOf) => Item,
): TurnCallKind<Reference> {
  return {
    templateOf: (reference) => stepOf(reference).template,
    questionOf: (stored, documents, toolsOf = noTools) => {
      const reference = schema.parse(stored);
      return questionAbout(stepOf(reference), itemOf(reference, documents, toolsOf));
    },
  };
}

function questionAbout<Item, Answer>(step: EngineStep<Item, Answer>, item: Item): Question {
  const earlier = new Map(Object.entries(step.renderEarlier ?? {}));
  const render: Question['render'] = (view) => step.render(view, item);
  return {
    template: step.template,
    render,
    renderingOf: (template) => {
      const renderEarlier = earlier.get(template);
      if (renderEarlier !== undefined) return (view) => renderEarlier(view, item);
      return template === step.template ? render : null;
    },
    read: (reply) => step.read(reply, item),
  };
}
