import type { CallStep, RouterCall } from '#bus/messages/router.ts';
import { actorCall } from './actor-call.ts';
import type { EffectRow } from './effect-row.ts';
import type { RenderDeps } from './render-deps.ts';

interface VectorCall {
  republished: boolean;
  step: CallStep;
  model: string;
  dimensions: number;
  /** One vector each, in this order. */
  contents: readonly string[];
}

/** A turn's call for vectors (ADR 60). */
export function vectorCall(effect: EffectRow, { republished, step, model, dimensions, contents }: VectorCall, deps: RenderDeps): RouterCall {
  const request = { messages: contents.map((content) => ({ role: 'user' as const, content })) };
  const call = actorCall(effect, { republished, step, want: 'none', models: [model], request }, deps);
  const embedding = { format: 'base64' as const, dimensions, inputType: null, tokens: null };
  // Nothing is generated; the order of providers is that of chats.
  const { provider: _, ...body } = call.request;
  return { ...call, surface: 'embeddings', embedding, maxTokens: null, request: body };
}
