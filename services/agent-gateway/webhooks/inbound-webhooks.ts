import type { TriggerableRoutine } from '../routines.ts';
import type { SignatureRule } from './signature.ts';

/** Under POST /webhooks/{name}. */
export interface InboundWebhook {
  name: string;
  /** Reference to the environment variable with the HMAC's secret, resolved at each delivery. */
  secretRef: string;
  signature: SignatureRule;
  /** The routine whose own webhook this is. */
  routine: TriggerableRoutine;
}

/** By name: those of routines, under the routine's id. */
export function inboundWebhooks(routines: ReadonlyMap<string, TriggerableRoutine>): ReadonlyMap<string, InboundWebhook> {
  const found = new Map<string, InboundWebhook>();
  for (const routine of routines.values()) {
    if (routine.webhook === null) continue;
    const { secret_env: secretRef, ...signature } = routine.webhook;
    found.set(routine.id, { name: routine.id, secretRef, signature, routine });
  }
  return found;
}
