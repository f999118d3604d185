import type { Manifest } from '#shared/contracts/manifest/manifest.ts';
import type { TriggerableRoutine } from '../routines.ts';
import type { SignatureRule } from './signature.ts';

/** Under POST /webhooks/{name}. */
export interface InboundWebhook {
  name: string;
  /** Reference to the environment variable with the HMAC's secret, resolved at each delivery. */
  secretRef: string;
  signature: SignatureRule;
  /** The routine whose own webhook this is; or, of one of the manifest, the routines that a delivery may be for. */
  target: { kind: 'routine'; routine: TriggerableRoutine } | { kind: 'fan-out'; candidates: readonly TriggerableRoutine[] };
}

/** By name: those of the manifest, and those of routines under the routine's id. A routine that can't be triggered is in neither. */
export function inboundWebhooks(
  routines: ReadonlyMap<string, TriggerableRoutine>,
  declared: Manifest['agent_config']['webhooks'],
): ReadonlyMap<string, InboundWebhook> {
  const found = new Map<string, InboundWebhook>();
  for (const routine of routines.values()) {
    if (routine.webhook === null) continue;
    const { secret_env: secretRef, ...signature } = routine.webhook;
    found.set(routine.id, { name: routine.id, secretRef, signature, target: { kind: 'routine', routine } });
  }
  // Behind them: a name of the manifest takes precedence.
  for (const { name, secret_env: secretRef, header, algorithm, prefix, routines: ids } of declared) {
    const candidates = ids.flatMap((id) => routines.get(id) ?? []);
    found.set(name, { name, secretRef, signature: { header, algorithm, prefix }, target: { kind: 'fan-out', candidates } });
  }
  return found;
}
