import type { CommandReply, SessionCommand } from '#bus/messages/session.ts';
import type { ActorInputs } from '../inputs/actor-inputs.ts';
import { actorKinds } from '../kinds/registry.ts';
import { applyCommand, failActors } from '../runtime/apply/apply-command.ts';
import type { CommitPlan } from '../runtime/apply/commit-plan.ts';
import type { SessionState } from '../runtime/apply/session-state.ts';

const PARTITION = 1;

/** Applies a command with the kinds of actors that the product has. */
export function applyTo(earlier: CommitPlan, state: SessionState | null, command: SessionCommand, inputs: ActorInputs): CommandReply | null {
  return applyCommand({ kinds: actorKinds, partition: PARTITION, state, command, inputs, earlier });
}

export function failIn(earlier: CommitPlan, state: SessionState | null, command: SessionCommand, inputs: ActorInputs): void {
  failActors({ kinds: actorKinds, partition: PARTITION, state, command, inputs, earlier });
}
