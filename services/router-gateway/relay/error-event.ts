import type { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { errorReply } from '../plugins/error-reply.ts';
import type { RelayedCall } from './relay.ts';

const PROVIDER = 'switchyard';

/** The SSE event that ends a stream after its headers; nothing may follow, not even `[DONE]`. */
export function errorEvent({ callId, model, surface }: RelayedCall, nowMs: number, error: SwitchyardError): string {
  return surface.errorEvent(errorReply(error).body, { id: callId, created: Math.floor(nowMs / 1_000), model, provider: PROVIDER });
}
