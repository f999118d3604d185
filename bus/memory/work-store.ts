import type { Database } from '#shared/storage/database.ts';
import { GroupCommit } from './group-commit.ts';
import { fromStoredText, toStoredText } from './stored-text.ts';
import type { ComponentDeps } from './types.ts';
import { vacuumer } from './vacuum.ts';

/** An item without its body. */
export interface WorkRow {
  id: number;
  kind: string;
  messageId: string;
  sizeBytes: number;
  publishedAtMs: number;
  /** Number of the next delivery, or of the one in flight. */
  delivery: number;
}

type Write = { type: 'insert'; row: WorkRow; body: string } | { type: 'redeliver'; id: number; delivery: number } | { type: 'remove'; id: number };

/**
 * The work table, by group commit. The start of a delivery is not stored: since only this process delivers, `recover` counts one more delivery for every
 * item.
 */
export class WorkStore {
  readonly #database: Database;
  readonly #commit: GroupCommit<Write>;
  readonly #vacuum: (deletedRows: number) => Promise<void>;

  constructor(deps: ComponentDeps) {
    this.#database = deps.database;
    this.#commit = new GroupCommit<Write>({
      flush: (writes) => this.#flush(writes),
      sizeOf: (write) => (write.type === 'insert' ? write.row.sizeBytes : 0),
    });
    this.#vacuum = vacuumer(deps, 'bus_work');
  }

  /** Deletes older items, counts a delivery for the rest and returns them, oldest first. */
  async recover(olderThanMs: number): Promise<WorkRow[]> {
    await this.#database.query('delete from bus_work where published_at_ms < $1', [olderThanMs]);
    const { rows } = await this.#database.query<{ id: number; kind: string; message_id: string; size: number; published_at_ms: number; delivery: number }>(
      `update bus_work set delivery = delivery + 1
       returning id, kind, message_id, octet_length(body) as size, published_at_ms, delivery`,
    );
    return rows
      .map((row) => ({
        id: row.id,
        kind: row.kind,
        messageId: fromStoredText(row.message_id),
        sizeBytes: row.size,
        publishedAtMs: row.published_at_ms,
        delivery: row.delivery,
      }))
      .sort((a, b) => a.id - b.id);
  }

  /** @throws `bus.full` */
  assertCapacity(): void {
    this.#commit.assertCapacity();
  }

  insert(row: WorkRow, body: string): Promise<void> {
    return this.#commit.add({ type: 'insert', row, body });
  }

  redeliver(id: number, delivery: number): Promise<void> {
    return this.#commit.add({ type: 'redeliver', id, delivery });
  }

  remove(id: number): Promise<void> {
    return this.#commit.add({ type: 'remove', id });
  }

  /** Null: no such item. */
  async body(id: number): Promise<string | null> {
    const { rows } = await this.#database.query<{ body: string }>({ name: 'bus_work_body', text: 'select body from bus_work where id = $1' }, [id]);
    return rows[0] === undefined ? null : fromStoredText(rows[0].body);
  }

  idle(): Promise<void> {
    return this.#commit.idle();
  }

  async #flush(writes: Write[]): Promise<void> {
    const inserts = writes.filter((write) => write.type === 'insert');
    const removed = new Set(writes.filter((write) => write.type === 'remove').map(({ id }) => id));
    // A statement may change a row only once. The last redelivery wins, and a removal over it.
    const redeliveries = new Map(writes.filter((write) => write.type === 'redeliver').map(({ id, delivery }) => [id, delivery]));
    for (const id of removed) redeliveries.delete(id);
    await this.#database.query(
      {
        name: 'bus_work_write',
        text: `with removed as (delete from bus_work where id = any($1::bigint[])),
          redelivered as (update bus_work set delivery = i.delivery from unnest($2::bigint[], $3::int[]) as i (id, delivery) where bus_work.id = i.id)
          insert into bus_work (id, kind, message_id, body, published_at_ms, delivery)
          select * from unnest($4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::int[])`,
      },
      [
        [...removed],
        [...redeliveries.keys()],
        [...redeliveries.values()],
        inserts.map(({ row }) => row.id),
        inserts.map(({ row }) => row.kind),
        inserts.map(({ row }) => toStoredText(row.messageId)),
        inserts.map(({ body }) => toStoredText(body)),
        inserts.map(({ row }) => row.publishedAtMs),
        inserts.map(({ row }) => row.delivery),
      ],
    );
    await this.#vacuum(removed.size + redeliveries.size);
  }
}
