import { z } from 'zod';
import type { RouterCall } from '#bus/messages/router.ts';
import { writePreamble } from '../engine/preamble/write-preamble.ts';
import type { TurnActions } from '../kinds/turn/types.ts';
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
  /** Offset of the conversation's last event. */
  upToOffset: z.number(),
});

type Request = Extract<TurnActions['effect'], { kind: 'preamble' }>;

/** Ten words, in JSON. Reasoning counts, too: a model that needs more is too slow for a preamble. */
const MAX_TOKENS = 200;

/** A line for the customer, by the cheapest of the agent's models. Its result is read as that of turn-call.ts; nothing waits for it. */
export const turnPreamble: EffectKind<z.infer<typeof inputs>, Request, null, never> = {
  name: 'turn-preamble',
  actor: 'turn',
  request: 'preamble',
  work: 'router.turn',
  inputs,
  inputsOf: ({ deadlineAtMs }, opening) => ({
    customerId: customerOf(opening),
    bundleHash: opening.bundleHash,
    template: writePreamble.template,
    upToOffset: opening.lastOffset,
    deadlineAtMs,
    traceparent: opening.traceparent,
  }),
  async render(effect, republished, deps): Promise<RouterCall> {
    const { bundleHash, template } = effect.inputs;
    if (template !== writePreamble.template) throw new Unrenderable(`the template ${template} is not known, only ${writePreamble.template}`);
    const { body } = await deps.bundleOf(bundleHash);
    const { context, llms } = body.manifest.agent_config;
    if (context.preamble === null) throw new TypeError('a preamble without examples');
    const request = writePreamble.render(await stepView(effect, body, await customerOfTurn(effect, body, deps), deps), context.preamble.examples);
    const models = new Set([llms.default, ...llms.fallback, ...[llms.evaluation, llms.evaluation_fallback].filter((model) => model !== null)]);
    const call = actorCall(effect, { republished, step: { name: 'preamble' }, want: 'none', models: [...models], request }, deps);
    const maxTokens = Math.min(MAX_TOKENS, call.maxTokens ?? MAX_TOKENS);
    // The router knows the prices; the order of providers is for replies.
    return { ...call, maxTokens, request: { ...call.request, provider: { sort: { by: 'price', partition: 'none' } } } };
  },
  results: {},
  overdue: 'report',
};
