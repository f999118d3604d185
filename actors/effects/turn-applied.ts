import { z } from 'zod';
import type { RouterCall } from '#bus/messages/router.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { engineDocumentsOf } from '../engine/engine-documents.ts';
import { matchItems } from '../engine/policies/match-batch.ts';
import { judgeApplied } from '../engine/policies/steps/judge-applied.ts';
import { overdueCheckTimer } from '../kinds/turn/overdue-check.ts';
import { Unrenderable } from '../runtime/publish/unrenderable.ts';
import { actorCall } from './actor-call.ts';
import { commonInputs, customerInput, customerOf, type EffectKind } from './effect-kind.ts';
import { customerOfTurn, stepView } from './step-view.ts';

const inputs = z.object({
  ...commonInputs,
  ...customerInput,
  bundleHash: z.string(),
  /** Of its prompt; another release's is not rendered. */
  template: z.string(),
  /** Offset of the turn's last event. */
  upToOffset: z.number(),
  /** In the order of the prompt. */
  policyIds: z.array(z.string()).readonly(),
});

interface Request {
  kind: 'applied';
  deadlineAtMs: number;
  policyIds: readonly string[];
}

/** After a turn: which of its policies the reply has applied. The turn is over, so the session takes the result (kinds/turn/applied-check.ts). */
export const turnApplied: EffectKind<z.infer<typeof inputs>, Request, null, never> = {
  name: 'turn-applied',
  actor: 'turn',
  request: 'applied',
  work: 'router.turn',
  inputs,
  inputsOf: ({ deadlineAtMs, policyIds }, opening) => ({
    customerId: customerOf(opening),
    bundleHash: opening.bundleHash,
    template: judgeApplied.template,
    upToOffset: opening.lastOffset,
    policyIds,
    deadlineAtMs,
    traceparent: opening.traceparent,
  }),
  async render(effect, republished, deps): Promise<RouterCall> {
    const { bundleHash, policyIds, template } = effect.inputs;
    if (template !== judgeApplied.template) throw new Unrenderable(`the template ${template} is not known, only ${judgeApplied.template}`);
    const { body } = await deps.bundleOf(bundleHash);
    const documents = engineDocumentsOf(body);
    if (documents === null) throw new TypeError('a turn without policies has none to look for in its reply');
    const items = matchItems({ id: 'applied', class: 'actionable', policyIds: [...policyIds] }, documents, documents.policyEvaluations);
    const { llms } = body.manifest.agent_config;
    const request = judgeApplied.render(await stepView(effect, body, await customerOfTurn(effect, body, deps), deps), items);
    return actorCall(
      effect,
      { republished, step: { name: 'applied', items: items.length }, want: 'none', models: [llms.default, ...llms.fallback], request },
      deps,
    );
  },
  results: {},
  overdue: 'report',
  timerOf({ id, actorId, sessionId, createdAtMs: sentAtMs, inputs: { deadlineAtMs, traceparent } }) {
    const { key, atMs: dueAtMs, command: failed } = overdueCheckTimer(id, actorId, deadlineAtMs);
    const header = { v: 1, sessionId, commandId: key, sentAtMs, answerTo: null, traceparent } as const;
    return { key, dueAtMs, command: JSON.stringify({ ...header, ...failed } satisfies CommandOf<'call.failed'>) };
  },
};
