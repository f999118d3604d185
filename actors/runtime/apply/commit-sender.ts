import { failPoint } from '#shared/fail-points.ts';
import { isTransientError } from '#shared/storage/transient-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { CommitResult } from '../../store/port/commit-store.ts';
import type { RuntimeStore } from '../../store/runtime-store.ts';
import type { CommitPlan } from './commit-plan.ts';
import { type Parsed, processedKeyOf, type Repeats } from './plan-batch.ts';

/** Back-off while the store is unavailable. */
const RETRY_FIRST_MS = 50;
const RETRY_LONGEST_MS = 2_000;

export type Outcome = CommitResult | { kind: 'refused'; error: unknown };

interface CommitSenderDeps {
  store: Pick<RuntimeStore, 'commits' | 'partitions'>;
  log: Log;
  metrics: Metrics;
}

/** Sends plans to the store and resolves unknown outcomes. While the store is unavailable everything waits, until `abort`. */
export class CommitSender {
  readonly #deps: CommitSenderDeps;
  #aborted = false;

  constructor(deps: CommitSenderDeps) {
    this.#deps = deps;
  }

  /** Ends all retries. */
  abort(): void {
    this.#aborted = true;
  }

  /** Stores a plan. An unknown outcome is read back, and the commit retried when nothing was stored. */
  async send(plan: CommitPlan): Promise<Outcome> {
    for (let pauseMs = RETRY_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, RETRY_LONGEST_MS)) {
      try {
        failPoint('commit.sending');
        const result = await this.#measured(plan);
        if (result.kind === 'committed') failPoint('commit.stored');
        return result;
      } catch (error) {
        if (!isTransientError(error)) return { kind: 'refused', error };
        this.#deps.log.warn({ err: error }, 'the outcome of a commit is not known');
        await this.#pause(pauseMs); // no fail point: pauses
        const owned = await this.retryWhileTransient(() => this.#readBack(plan)); // no fail point: reads
        if (owned !== null) return { kind: 'committed', owned };
      }
    }
  }

  async #measured(plan: CommitPlan): Promise<CommitResult> {
    const { store, metrics } = this.#deps;
    const beganAtMs = performance.now();
    let outcome: 'committed' | 'repeated' | 'refused' | 'unknown' = 'committed';
    try {
      const result = await store.commits.commit(plan); // no fail point: caller
      outcome = result.kind;
      return result;
    } catch (error) {
      outcome = isTransientError(error) ? 'unknown' : 'refused';
      throw error;
    } finally {
      metrics.observe('commitSeconds', {}, (performance.now() - beganAtMs) / 1_000);
      metrics.add('commits', { outcome });
    }
  }

  /** The partitions that the commit stored, or null when it stored nothing and can be retried. */
  async #readBack(plan: CommitPlan): Promise<Set<number> | null> {
    const stored = await this.#deps.store.partitions.read([...plan.partitions.keys()]); // no fail point: reads
    const committed = new Set<number>();
    let isOurs = false;
    for (const [partition, { epoch, commitNo, owner }] of stored) {
      const claim = plan.partitions.get(partition)?.claim;
      if (claim === undefined || epoch !== claim.epoch || owner !== claim.owner) continue;
      isOurs = true;
      if (commitNo === claim.commitNo + 1) committed.add(partition);
    }
    return committed.size === 0 && isOurs ? null : committed;
  }

  /** Adds to `repeats` the commands that were applied before. @returns whether any was added */
  async findRepeats(batch: readonly Parsed[], repeats: Repeats): Promise<boolean> {
    const commands = batch.flatMap(({ command }) => (command === null ? [] : [command]));
    const processed = await this.retryWhileTransient(() => this.#deps.store.commits.processed(commands)); // no fail point: reads
    const before = repeats.size;
    for (const one of processed) repeats.set(processedKeyOf(one), one.reply);
    return repeats.size > before;
  }

  /** Retries without a limit, until `abort`. */
  async retryWhileTransient<Result>(read: () => Promise<Result>): Promise<Result> {
    for (let pauseMs = RETRY_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, RETRY_LONGEST_MS)) {
      try {
        return await read(); // no fail point: reads
      } catch (error) {
        if (!isTransientError(error)) throw error;
        this.#deps.log.warn({ err: error }, 'the database can not be read yet');
        await this.#pause(pauseMs); // no fail point: pauses
      }
    }
  }

  /** @throws after `abort` */
  async #pause(ms: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, ms)); // no fail point: pauses
    if (this.#aborted) throw new Error('the host has stopped');
  }
}
