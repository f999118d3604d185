import type { BundleStore } from '#shared/config/bundle-store.ts';
import type { EvaluationStore } from '#shared/config/evaluation-store.ts';
import type { CommitStore } from './port/commit-store.ts';
import type { CustomerStore } from './port/customer-store.ts';
import type { EffectStore } from './port/effect-store.ts';
import type { HostStore } from './port/host-store.ts';
import type { PartitionStore } from './port/partition-store.ts';
import type { RunStore } from './port/run-store.ts';
import type { SessionStore } from './port/session-store.ts';
import type { TimerStore } from './port/timer-store.ts';
import type { TurnStore } from './port/turn-store.ts';

/**
 * The port to the runtime's store. Drivers: actors/store/sql, and the model of tests/simulation; both pass actors/store/conformance.
 *
 * Every method may throw a transient error (`isTransientError`); it may have been executed nevertheless. Drivers do not retry: the runtime does, since
 * only it knows what it does meanwhile. No result shares state with the store.
 */
export interface RuntimeStore {
  readonly commits: CommitStore;
  readonly partitions: PartitionStore;
  readonly hosts: HostStore;
  readonly sessions: SessionStore;
  readonly timers: TimerStore;
  readonly effects: EffectStore;
  readonly runs: RunStore;
  readonly turns: TurnStore;
  readonly customers: CustomerStore;
  readonly bundles: BundleStore;
  readonly evaluations: Pick<EvaluationStore, 'read' | 'newestSet'>;
  /** Deletes rows of workers that are no longer needed, a limited number at a time. */
  sweep(): Promise<void>;
}
