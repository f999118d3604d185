import type { EffectRow } from '../../effects/effect-row.ts';

export interface OpenEffect {
  effect: EffectRow;
  /** Its publish was not acknowledged, as far as is stored. */
  isUnpublished: boolean;
  /** A tool call that must not be repeated has begun. */
  isClaimed: boolean;
}

export interface EffectStore {
  /** By age. */
  open(partitions: readonly number[]): Promise<OpenEffect[]>;
  superseded(effectIds: readonly string[]): Promise<Set<string>>;
  /** Tool calls that must not be repeated and have begun. */
  claimed(effectIds: readonly string[]): Promise<Set<string>>;
  /** Addresses of callbacks and events with an open round or a retry to come, over all partitions; each once. */
  pendingReceivers(limit: number): Promise<string[]>;
}
