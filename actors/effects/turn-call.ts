import { z } from 'zod';
import type { RouterCall } from '#bus/messages/router.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { Failure } from '#shared/errors/switchyard-error.ts';
import { guidanceOf } from '../engine/composition/guidance-of.ts';
import { documentsFor } from '../engine/engine-documents.ts';
import { currentRows, type TurnRow } from '../engine/turn-row.ts';
import type { VariableValues } from '../engine/variables/variable-values.ts';
import { composeReply, GUIDED_TEMPLATE } from '../kinds/turn/steps/compose-reply.ts';
import type { TurnActions, TurnEventBody, TurnScope } from '../kinds/turn/types.ts';
import { Unrenderable } from '../runtime/publish/unrenderable.ts';
import { deadlineKeyOf } from '../tool-loop/effect-ids.ts';
import { actorCall } from './actor-call.ts';
import { commonInputs, customerInput, customerOf, type EffectKind } from './effect-kind.ts';
import type { RenderDeps } from './render-deps.ts';
import { customerOfTurn, stepView } from './step-view.ts';
import { turnRowsBelow } from './turn-rows-below.ts';

const inputs = z.object({
  ...commonInputs,
  ...customerInput,
  template: z.string(),
  bundleHash: z.string(),
  /** Offset of the conversation's last event. */
  upToOffset: z.number(),
  /** So many rows of the turn count; absent: it has none. */
  staged: z.number().optional(),
  /** The reply is checked before anything of it is shown. */
  isWithheld: z.boolean().optional(),
});

/** Of the releases before, too. Without injected tool results all give the same bytes; those before 3 have no glossary, those before 4 know nothing of the customer. */
const TEMPLATES: readonly string[] = ['compose@1', 'compose@2', 'compose@3', 'compose-guided@1', composeReply.template, GUIDED_TEMPLATE];

type Request = Extract<TurnActions['effect'], { kind: 'router-call' }>;

/** A turn's model call, on the conversation so far. */
export const turnCall: EffectKind<z.infer<typeof inputs>, Request, TurnScope, TurnEventBody> = {
  name: 'router-call',
  actor: 'turn',
  request: 'router-call',
  work: 'router.turn',
  inputs,
  inputsOf: ({ deadlineAtMs, staged, isWithheld }, opening) => ({
    customerId: customerOf(opening),
    template: staged === undefined ? composeReply.template : GUIDED_TEMPLATE,
    bundleHash: opening.bundleHash,
    upToOffset: opening.lastOffset,
    deadlineAtMs,
    traceparent: opening.traceparent,
    ...(staged !== undefined && { staged }),
    ...(isWithheld === true && { isWithheld }),
  }),
  async render(effect, republished, deps): Promise<RouterCall> {
    const { inputs: given } = effect;
    const { template } = given;
    if (!TEMPLATES.includes(template)) throw new Unrenderable(`the template ${template} is not known, only ${TEMPLATES.join(', ')}`);
    const bundle = await deps.bundleOf(given.bundleHash);
    const { llms } = bundle.body.manifest.agent_config;
    const customer = await customerOfTurn(effect, bundle.body, deps);
    const view = await stepView(effect, bundle.body, customer, deps);
    const { messages } = composeReply.render(
      template === 'compose@1' || template === 'compose@2' ? { ...view, glossary: [] } : view,
      given.staged === undefined ? null : await guidance(bundle, await turnRowsBelow(given.staged, effect.actorId, deps), customer.values, deps),
    );
    const want = deps.settings.streaming && given.isWithheld !== true ? 'frames' : 'none';
    return actorCall(effect, { republished, step: { name: 'compose' }, want, models: [llms.default, ...llms.fallback], request: { messages } }, deps);
  },
  results: {
    /** Of the structured calls (turn-step.ts), too: a result does not name its kind. */
    'call.completed': (command, scope) =>
      scope.preambleOf(command) ??
      scope.searchOf(command) ??
      scope.likenessOf(command) ??
      scope.stepOf(command) ??
      scope.replyOf(command, composeReply.read(command)),
    /** Of tools, too: releases before reported so an item whose publishing was not confirmed in time. */
    'call.failed': (command: CommandOf<'call.failed'>, scope) =>
      scope.preambleOf(command) ??
      scope.searchOf(command) ??
      scope.likenessOf(command) ??
      scope.failedCheckOf(command.callId) ??
      scope.overdueOf(command.callId) ?? {
        ...command,
        failure: command.failure as Failure,
      },
  },
  overdue: 'report',
  /** The deadline of a turn that is this one call. Of other turns it is the same as that of their row. */
  timerOf({ actorId: turnId, sessionId, createdAtMs: sentAtMs, inputs: { deadlineAtMs: dueAtMs, traceparent } }) {
    const key = deadlineKeyOf(turnId);
    const command = {
      v: 1,
      sessionId,
      commandId: key,
      sentAtMs,
      answerTo: null,
      traceparent,
      type: 'turn.deadline',
      turnId,
    } satisfies CommandOf<'turn.deadline'>;
    return { key, dueAtMs, command: JSON.stringify(command) };
  },
};

/** With the evaluations that the turn began with. */
async function guidance(
  bundle: Bundle,
  rows: readonly TurnRow[],
  values: VariableValues,
  { evaluationsOf }: Pick<RenderDeps, 'evaluationsOf'>,
): Promise<string | null> {
  const documents = documentsFor(bundle.body, await evaluationsOf(bundle, currentRows(rows).began.evaluations ?? null), values);
  return documents === null ? null : guidanceOf(rows, documents);
}
