import type { CommandReply } from '#bus/messages/session.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { Database } from '#shared/storage/database.ts';
import { isTransientError, sqlStateOf } from '#shared/storage/transient-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { CommitPlan } from './commit-plan.ts';
import { type Parsed, processedKeyOf, type Repeats } from './plan-batch.ts';
import { commitOf } from '../../store/sql/commit-statement.ts';

/** Back-off while the database is unavailable. */
const RETRY_FIRST_MS = 50;
const RETRY_LONGEST_MS = 2_000;

export type Outcome = { kind: 'committed'; owned: ReadonlySet<number> } | { kind: 'repeated' | 'refused'; error: unknown };

/** Stores plans and resolves unknown outcomes. While the database is unavailable everything waits, until `abort`. */
export class CommitStore {
  readonly #database: Database;
  readonly #log: Log;
  readonly #metrics: Metrics;
  #aborted = false;

  constructor({ database, log, metrics }: { database: Database; log: Log; metrics: Metrics }) {
    this.#database = database;
    this.#log = log;
    this.#metrics = metrics;
  }

  /** Ends all retries. */
  abort(): void {
    this.#aborted = true;
  }

  /** Stores a plan. An unknown outcome is read back, and the commit retried when nothing was stored. */
  async store(plan: CommitPlan): Promise<Outcome> {
    const { statement, parameters } = commitOf(plan);
    for (let pauseMs = RETRY_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, RETRY_LONGEST_MS)) {
      try {
        failPoint('commit.sending');
        const { rows } = await this.#measured(() => this.#database.query<{ owned: number[] }>(statement, parameters));
        failPoint('commit.stored');
        return { kind: 'committed', owned: new Set(rows[0]?.owned ?? []) };
      } catch (error) {
        if (sqlStateOf(error) === '23505') return { kind: 'repeated', error };
        if (!isTransientError(error)) return { kind: 'refused', error };
        this.#log.warn({ err: error }, 'the outcome of a commit is not known');
        await this.#pause(pauseMs); // no fail point: pauses
        const owned = await this.retryWhileTransient(() => this.#readBack(plan)); // no fail point: reads
        if (owned !== null) return { kind: 'committed', owned };
      }
    }
  }

  async #measured<Result>(commit: () => Promise<Result>): Promise<Result> {
    const beganAtMs = performance.now();
    let outcome: 'committed' | 'repeated' | 'refused' | 'unknown' = 'committed';
    try {
      return await commit(); // no fail point: inside
    } catch (error) {
      outcome = sqlStateOf(error) === '23505' ? 'repeated' : isTransientError(error) ? 'unknown' : 'refused';
      throw error;
    } finally {
      this.#metrics.observe('commitSeconds', {}, (performance.now() - beganAtMs) / 1_000);
      this.#metrics.add('commits', { outcome });
    }
  }

  /** The partitions that the commit stored, or null when it stored nothing and can be retried. */
  async #readBack(plan: CommitPlan): Promise<Set<number> | null> {
    // no fail point: reads
    const { rows } = await this.#database.query<{ p: number; epoch: number; commit_no: number; owner: string | null }>(
      'select p, epoch, commit_no, owner from parts where p = any($1::int[])',
      [[...plan.partitions.keys()]],
    );
    const ours = rows.filter((row) => {
      const claim = plan.partitions.get(row.p)?.claim;
      return row.epoch === claim?.epoch && row.owner === claim.owner;
    });
    const committed = ours.filter((row) => row.commit_no === (plan.partitions.get(row.p)?.claim.commitNo ?? 0) + 1);
    if (committed.length === 0 && ours.length > 0) return null;
    return new Set(committed.map((row) => row.p));
  }

  /** Adds to `repeats` the commands that were applied before. @returns whether any was added */
  async findRepeats(batch: readonly Parsed[], repeats: Repeats): Promise<boolean> {
    const commands = batch.flatMap(({ command }) => (command === null ? [] : [command]));
    // no fail point: reads
    const { rows } = await this.retryWhileTransient(() =>
      this.#database.query<{ session_id: string; command_id: string; answer: CommandReply | null }>(
        'select session_id, command_id, answer from seen join unnest($1::text[], $2::text[]) as i (session_id, command_id) using (session_id, command_id)',
        [commands.map((command) => command.sessionId), commands.map((command) => command.commandId)],
      ),
    );
    const before = repeats.size;
    for (const row of rows) repeats.set(processedKeyOf({ sessionId: row.session_id, commandId: row.command_id }), row.answer);
    return repeats.size > before;
  }

  /** Retries without a limit, until `abort`. */
  async retryWhileTransient<Result>(read: () => Promise<Result>): Promise<Result> {
    for (let pauseMs = RETRY_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, RETRY_LONGEST_MS)) {
      try {
        return await read(); // no fail point: reads
      } catch (error) {
        if (!isTransientError(error)) throw error;
        this.#log.warn({ err: error }, 'the database can not be read yet');
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
