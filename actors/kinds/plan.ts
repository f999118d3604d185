import type { CarriedContext } from '#shared/telemetry/carried-context.ts';
import { effects } from '../effects/registry.ts';
import type { ActorInputs } from '../inputs/actor-inputs.ts';
import type { CommandPlan } from '../runtime/apply/command-plan.ts';

/** A command's plan, with the inputs that the kinds of actors need. */
export type Plan = CommandPlan<ActorInputs>;

/** One function per action of a machine. */
export type Handlers<Actions> = { readonly [Name in keyof Actions]: (plan: Plan, params: Actions[Name]) => void };

interface Opened {
  id: string;
  /** The turn, run or delivery. */
  actorId: string;
  /** Empty for a delivery, whose row names it. */
  bundleHash: string;
  traceparent: string | null;
  carried?: CarriedContext | undefined;
  /** The newest event that it knows; absent: that of the log. */
  lastOffset?: number;
}

/**
 * Opens an effect.
 * @param actor name of the kind
 * @param request parameters of the machine's action
 */
export function openEffect(
  plan: Plan,
  actor: string,
  request: { kind: string },
  { id, actorId, bundleHash, traceparent, carried, lastOffset = plan.lastOffset }: Opened,
): void {
  const opened = effects.opened(actor, request, {
    actorId,
    bundleHash,
    traceparent,
    carried,
    lastOffset,
    customerId: plan.record?.customer_id ?? null,
  });
  plan.openEffect({ id, actorId, ...opened });
}
