import type { Database } from '#shared/storage/database.ts';
import { GroupCommit } from './group-commit.ts';
import { fromStoredText, toStoredText } from './stored-text.ts';
import type { ComponentDeps } from './types.ts';
import { vacuumer } from './vacuum.ts';

/** Limit of one read: short, since the database runs on our event loop. */
const PAGE_BYTES = 4 * 1024 * 1024;

export interface UsageRow {
  sequence: number;
  messageId: string;
  body: string;
  sizeBytes: number;
  storedAtMs: number;
}

type Write = { type: 'insert'; row: UsageRow } | { type: 'remove'; sequences: readonly number[] };

/** The table of usage records, by group commit. */
export class UsageStore {
  readonly #database: Database;
  readonly #commit: GroupCommit<Write>;
  readonly #vacuum: (deletedRows: number) => Promise<void>;

  constructor(deps: ComponentDeps) {
    this.#database = deps.database;
    this.#commit = new GroupCommit<Write>({
      flush: (writes) => this.#flush(writes),
      sizeOf: (write) => (write.type === 'insert' ? write.row.sizeBytes : 0),
    });
    this.#vacuum = vacuumer(deps, 'bus_usage');
  }

  async state(): Promise<{ last: number; records: number; sizeBytes: number }> {
    const { rows } = await this.#database.query<{ last: number; records: number; bytes: number }>(
      'select coalesce(max(sequence), 0) as last, count(*)::int as records, coalesce(sum(octet_length(body)), 0)::float8 as bytes from bus_usage',
    );
    const { last = 0, records = 0, bytes = 0 } = rows[0] ?? {};
    return { last, records, sizeBytes: bytes };
  }

  async storedAfter(atMs: number): Promise<{ messageId: string; storedAtMs: number }[]> {
    const { rows } = await this.#database.query<{ message_id: string; stored_at_ms: number }>(
      'select message_id, stored_at_ms from bus_usage where stored_at_ms > $1 order by sequence',
      [atMs],
    );
    return rows.map((row) => ({ messageId: fromStoredText(row.message_id), storedAtMs: row.stored_at_ms }));
  }

  /** Null for none. */
  async oldestAtMs(): Promise<number | null> {
    const { rows } = await this.#database.query<{ stored_at_ms: number }>({
      name: 'bus_usage_oldest',
      text: 'select stored_at_ms from bus_usage order by sequence limit 1',
    });
    return rows[0]?.stored_at_ms ?? null;
  }

  /** @throws `bus.full` */
  assertCapacity(): void {
    this.#commit.assertCapacity();
  }

  insert(row: UsageRow): Promise<void> {
    return this.#commit.add({ type: 'insert', row });
  }

  remove(sequences: readonly number[]): Promise<void> {
    return this.#commit.add({ type: 'remove', sequences });
  }

  /** The oldest records, at least one if there is any; more only below the byte limit. */
  async read(without: readonly number[], limit: number): Promise<UsageRow[]> {
    const { rows } = await this.#database.query<{ sequence: number; message_id: string; body: string; size: number; stored_at_ms: number }>(
      {
        name: 'bus_usage_read',
        text: `select sequence, message_id, body, size, stored_at_ms from (
            select *, sum(size) over (order by sequence) - size as before from (
              select sequence, message_id, body, octet_length(body) as size, stored_at_ms from bus_usage where sequence <> all($1::bigint[]) order by sequence limit $2
            ) candidates) page
          where before < $3 order by sequence`,
      },
      [without, limit, PAGE_BYTES],
    );
    return rows.map((row) => ({
      sequence: row.sequence,
      messageId: fromStoredText(row.message_id),
      body: fromStoredText(row.body),
      sizeBytes: row.size,
      storedAtMs: row.stored_at_ms,
    }));
  }

  idle(): Promise<void> {
    return this.#commit.idle();
  }

  async #flush(writes: Write[]): Promise<void> {
    const inserts = writes.flatMap((write) => (write.type === 'insert' ? [write.row] : []));
    const removed = writes.flatMap((write) => (write.type === 'remove' ? write.sequences : []));
    await this.#database.query(
      {
        name: 'bus_usage_write',
        text: `with removed as (delete from bus_usage where sequence = any($1::bigint[]))
          insert into bus_usage (sequence, message_id, body, stored_at_ms) select * from unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[])`,
      },
      [
        removed,
        inserts.map(({ sequence }) => sequence),
        inserts.map(({ messageId }) => toStoredText(messageId)),
        inserts.map(({ body }) => toStoredText(body)),
        inserts.map(({ storedAtMs }) => storedAtMs),
      ],
    );
    await this.#vacuum(removed.length);
  }
}
