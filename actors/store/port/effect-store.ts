import type { EffectRow } from '../../effects/effect-row.ts';

export interface OpenEffect {
  effect: EffectRow;
  /** Its publish was not acknowledged, as far as is stored. */
  isUnpublished: boolean;
  /** A host of a release before has inserted an outbox row for it. */
  hasOutboxRow: boolean;
  /** A tool call that must not be repeated has begun. */
  isClaimed: boolean;
}

export interface EffectStore {
  /** By age. */
  open(partitions: readonly number[]): Promise<OpenEffect[]>;
  superseded(effectIds: readonly string[]): Promise<Set<string>>;
  /** Withdraws the tool calls that no worker has claimed: none can claim them afterwards. Repeatable. @returns the others, which have begun */
  withdrawUnclaimed(effectIds: readonly string[]): Promise<Set<string>>;
  /** Addresses of callbacks and events with an open round or a retry to come, over all partitions; each once. */
  pendingReceivers(limit: number): Promise<string[]>;
}
