import { actorFields } from '#bus/messages/actor-fields.ts';
import type { CallStep, RouterCall } from '#bus/messages/router.ts';
import type { EffectRow } from './effect-row.ts';
import { modelRequest } from './model-request.ts';
import type { RenderDeps } from './render-deps.ts';

type Request = RouterCall['request'];

interface ModelCall {
  republished: boolean;
  step: CallStep;
  want: 'frames' | 'none';
  /** Tried in this order. */
  models: readonly string[];
  request: { messages: Request['messages']; tools?: Request['tools']; tool_choice?: Request['tool_choice']; response_format?: Request['response_format'] };
}

/** A model call of an actor. Its result goes to the session's owner, with the epoch in which it is rendered. */
export function actorCall(effect: EffectRow, { republished, step, want, models, request }: ModelCall, { epochOf, settings }: RenderDeps): RouterCall {
  const { id: callId, sessionId, actorId, createdAtMs, partition, inputs } = effect;
  return {
    v: 1,
    callId,
    origin: sessionId,
    want,
    surface: 'parts',
    deadlineAtMs: inputs.deadlineAtMs,
    createdAtMs,
    detached: false,
    republished,
    keyId: settings.modelKey,
    traceparent: inputs.traceparent,
    maxTokens: settings.maxTokens,
    step,
    request: modelRequest(request, { models, sessionId }, settings),
    reply: { sessionId, ...actorFields(actorId), epoch: epochOf(partition) },
  };
}
