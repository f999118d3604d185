import type { UsageLog, UsageMessage } from '#bus/bus.ts';
import type { Clock } from '#shared/clock.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { OVERDUE_INTERIM } from '../interim/interim-sql.ts';

/** Per look. */
const MAX_OVERDUE = 500;

interface OverdueDeps {
  database: Queryable;
  usage: Pick<UsageLog, 'backlog'>;
  /** The database's. */
  clock: Clock;
}

/**
 * Finds interim records of dead calls: their worker writes them no more, and no record of their end is in the ledger, or waits in the log since before they
 * were overdue. A look also deletes those of calls that have ended.
 */
export class OverdueInterims {
  readonly #deps: OverdueDeps;
  #before: ReadonlySet<string> = new Set();

  constructor(deps: OverdueDeps) {
    this.#deps = deps;
  }

  /**
   * Those that the look before has found, too: behind an outage of the database all are overdue, until their workers have written them again.
   * @throws the bus's and the database's errors
   */
  async next(): Promise<UsageMessage[]> {
    const { database, usage, clock } = this.#deps;
    const before = this.#before;
    this.#before = new Set();
    const nowMs = clock.nowMs();
    const { oldestAtMs } = await usage.backlog();
    const { rows } = await database.query<{ generation_id: string; record: string }>(OVERDUE_INTERIM, [
      oldestAtMs === null ? nowMs : Math.min(nowMs, oldestAtMs),
      MAX_OVERDUE,
    ]);
    this.#before = new Set(rows.map(({ generation_id: id }) => id));
    return rows.filter(({ generation_id: id }) => before.has(id)).map(({ generation_id: messageId, record: body }) => ({ messageId, body }));
  }
}
