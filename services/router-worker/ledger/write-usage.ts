import type { LedgerFields } from '#bus/messages/usage.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { Database, Queryable } from '#shared/storage/database.ts';
import { SETTLE_RESERVATIONS, WRITE_RECORDS } from './ledger-sql.ts';

/** A record's fields and its text. */
export interface ReadRecord {
  record: LedgerFields;
  /** Without line ends. */
  body: string;
}

/**
 * Writes records to the ledger, adds their costs to what their keys have spent, and settles their reservations: all of it in one transaction, or nothing.
 * Idempotent by generation id; a record that is in the ledger already still ends the reservation of its call. Any number of writers may run.
 *
 * @returns how many were not in the ledger yet
 * @throws the database's errors
 */
export async function writeUsage(database: Database, records: readonly ReadRecord[]): Promise<number> {
  const reserved = records.filter(({ record }) => record.reserved).map(({ record }) => record.generationId);
  if (reserved.length === 0) return insert(database, records);
  return database.transaction(async (handle) => {
    const inserted = await insert(handle, records);
    failPoint('ledger.inserted');
    // no fail point: caller
    await handle.query(SETTLE_RESERVATIONS, [reserved]);
    return inserted;
  });
}

async function insert(handle: Queryable, read: readonly ReadRecord[]): Promise<number> {
  const records = read.map(({ record }) => record);
  // no fail point: caller
  const { rows } = await handle.query<{ inserted: number }>(WRITE_RECORDS, [
    records.map(({ generationId }) => generationId),
    records.map(({ keyId }) => keyId),
    records.map(({ createdAtMs }) => Math.trunc(createdAtMs)),
    records.map(({ model }) => model),
    records.map(({ provider }) => provider),
    records.map(({ tokens }) => tokens.prompt),
    records.map(({ tokens }) => tokens.completion),
    records.map(({ tokens }) => tokens.reasoning),
    records.map(({ costNano }) => costNano),
    // As one text, since the driver escapes each quote in an array of texts.
    read.map(({ body }) => body).join('\n'),
    records.map(({ reserved }) => reserved),
  ]);
  return rows[0]?.inserted ?? 0;
}
