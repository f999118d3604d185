import type { RouterCall } from '#bus/messages/router.ts';

type Request = RouterCall['request'];

export interface ModelRequestSettings {
  /** Slugs of providers, tried first and in this order, as `provider.order`. Empty: the router's own order. */
  providerOrder: readonly string[];
}

interface ModelRequest {
  /** Tried in this order. */
  models: readonly string[];
  /** Groups the calls of a conversation at the router; undefined: the call belongs to none. */
  sessionId: string | undefined;
}

/** The request of a model call of the agent, with what all of them carry. Other providers stay allowed behind those of the order. */
export function modelRequest<Body extends Omit<Request, 'model' | 'models' | 'session_id' | 'provider'>>(
  body: Body,
  { models, sessionId }: ModelRequest,
  { providerOrder }: ModelRequestSettings,
): Body & Pick<Request, 'model' | 'models' | 'session_id' | 'provider'> {
  const [model, ...others] = models;
  return {
    ...body,
    model,
    models: others.length > 0 ? others : undefined,
    session_id: sessionId,
    ...(providerOrder.length > 0 && { provider: { order: [...providerOrder], allow_fallbacks: true } }),
  };
}
