import { z } from 'zod';
import type { CallStep, RouterCall } from '#bus/messages/router.ts';
import { type ListedTool, listedTool } from '#bus/messages/tool.ts';
import { documentsFor } from '../engine/engine-documents.ts';
import { routineCall } from '../engine/routines/routine-calls.ts';
import { inferReference } from '../engine/tools/tool-rounds.ts';
import { type TurnCallName, turnCalls } from '../engine/turn-calls.ts';
import type { TurnActions, TurnEventBody, TurnScope } from '../kinds/turn/types.ts';
import { Unrenderable } from '../runtime/publish/unrenderable.ts';
import { actorCall } from './actor-call.ts';
import { commonInputs, customerInput, customerOf, type EffectKind } from './effect-kind.ts';
import { customerOfTurn, stepView } from './step-view.ts';

const inputs = z.object({
  ...commonInputs,
  ...customerInput,
  bundleHash: z.string(),
  /** Offset of the conversation's last event. */
  upToOffset: z.number(),
  /** Of turn-calls.ts. */
  call: z.string(),
  /** Of its prompt. */
  template: z.string(),
  /** The items, by their ids. */
  reference: z.unknown(),
  /** The set of evaluations whose texts the prompt has; absent: those of the documents. */
  evaluations: z.string().optional(),
  /** The prompt is rendered from so many rows of the turn. */
  staged: z.number(),
});

/** What references of questions are about. */
const namedItems = z.object({ class: z.string().optional(), policyIds: z.array(z.string()).optional(), tools: z.array(z.unknown()).optional() });

type Request = Extract<TurnActions['effect'], { kind: 'turn-step' }>;

/** A structured model call of a turn. Its result is read as that of turn-call.ts. */
export const turnStep: EffectKind<z.infer<typeof inputs>, Request, TurnScope, TurnEventBody> = {
  name: 'turn-step',
  actor: 'turn',
  request: 'turn-step',
  work: 'router.turn',
  inputs,
  inputsOf: ({ deadlineAtMs, staged, request }, opening) => ({
    customerId: customerOf(opening),
    bundleHash: opening.bundleHash,
    upToOffset: opening.lastOffset,
    call: request.kind,
    template: request.template,
    reference: request.reference,
    evaluations: request.evaluations ?? undefined,
    staged,
    deadlineAtMs,
    traceparent: opening.traceparent,
  }),
  async render(effect, republished, deps): Promise<RouterCall> {
    const { inputs: given } = effect;
    const bundle = await deps.bundleOf(given.bundleHash);
    const { body } = bundle;
    const customer = await customerOfTurn(effect, body, deps);
    const documents = documentsFor(body, await deps.evaluationsOf(bundle, given.evaluations ?? null), customer.values);
    if (documents === null || !Object.hasOwn(turnCalls, given.call)) throw new TypeError(`a call '${given.call}' that the configuration has no use for`);
    const lists = given.call === 'infer-tools' ? listsNamedBy(given.reference) : [];
    const stored = lists.length === 0 ? null : await deps.runs.toolLists(lists);
    const question = turnCalls[given.call as TurnCallName].questionOf(given.reference, documents, (hash) => toolsIn(stored?.get(hash)));
    const render = question.renderingOf(given.template);
    if (render === null) throw new Unrenderable(`the template ${given.template} is not known, only ${question.template}`);
    const request = render(await stepView(effect, body, customer, deps));
    const { llms } = body.manifest.agent_config;
    return actorCall(effect, { republished, step: stepOf(given), want: 'none', models: [llms.default, ...llms.fallback], request }, deps);
  },
  results: {},
  overdue: 'report',
};

/** The items by their number alone. */
function stepOf({ call: name, reference }: z.infer<typeof inputs>): CallStep {
  // By its name: to find out that a reference does not fit a schema costs more than the rest of the item.
  const routine = name === 'routine' ? routineCall.safeParse(reference).data : undefined;
  if (routine !== undefined) return { name: routine.kind, routineId: routine.routineId };
  const batch = namedItems.safeParse(reference).data ?? {};
  const items = batch.policyIds ?? batch.tools;
  return { name, ...(items && { items: items.length }), ...(batch.class && { batchClass: batch.class }) };
}

function listsNamedBy(reference: unknown): string[] {
  const { success, data } = inferReference.safeParse(reference);
  return success ? Object.values(data.lists) : [];
}

function toolsIn(stored: unknown): readonly ListedTool[] | null {
  return listedTool.array().safeParse(stored).data ?? null;
}
