import { z } from 'zod';
import type { RouterCall } from '#bus/messages/router.ts';
import { promptOf } from '../engine/prompt-of.ts';
import { rewriteQuery } from '../engine/retrieval/rewrite-query.ts';
import type { TurnActions, TurnEventBody, TurnScope } from '../kinds/turn/types.ts';
import { Unrenderable } from '../runtime/publish/unrenderable.ts';
import { actorCall } from './actor-call.ts';
import { commonInputs, customerInput, customerOf, type EffectKind } from './effect-kind.ts';
import { notAwaited } from './not-awaited.ts';
import { customerOfTurn, stepView } from './step-view.ts';

const inputs = z.object({
  ...commonInputs,
  ...customerInput,
  bundleHash: z.string(),
  /** Of its prompt; another release's is not rendered. */
  template: z.string(),
  /** Offset of the conversation's last event. */
  upToOffset: z.number(),
});

type Request = Extract<TurnActions['effect'], { kind: 'rewrite-query' | 'embed' | 'search' }> & { kind: 'rewrite-query' };

/** A model's query for a search by meaning. Its result is read as that of turn-call.ts; without one the customer's message is searched for. */
export const rewriteQueryCall: EffectKind<z.infer<typeof inputs>, Request, TurnScope, TurnEventBody> = {
  name: 'rewrite-query',
  actor: 'turn',
  request: 'rewrite-query',
  work: 'router.turn',
  inputs,
  inputsOf: ({ deadlineAtMs }, opening) => ({
    customerId: customerOf(opening),
    bundleHash: opening.bundleHash,
    template: rewriteQuery.template,
    upToOffset: opening.lastOffset,
    deadlineAtMs,
    traceparent: opening.traceparent,
  }),
  async render(effect, republished, deps): Promise<RouterCall> {
    const { bundleHash, template } = effect.inputs;
    if (template !== rewriteQuery.template) throw new Unrenderable(`the template ${template} is not known, only ${rewriteQuery.template}`);
    const { body } = await deps.bundleOf(bundleHash);
    const { search, llms } = body.manifest.agent_config;
    if (search?.type !== 'pgvector') throw new TypeError('a query for a search that the configuration does not have');
    const prompt = search.prompt === null ? null : promptOf(body.documents, search.prompt);
    const request = rewriteQuery.render(await stepView(effect, body, await customerOfTurn(effect, body, deps), deps), prompt);
    return actorCall(effect, { republished, step: { name: 'rewrite-query' }, want: 'none', models: [llms.default, ...llms.fallback], request }, deps);
  },
  results: {},
  overdue: (command, scope) => scope.searchOf(command) ?? notAwaited(command.callId),
};
