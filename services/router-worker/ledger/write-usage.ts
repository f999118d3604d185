import type { LedgerFields } from '#bus/messages/usage.ts';
import { beginSpend } from '#shared/credit/reservation-statements.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { WRITE_RECORDS } from './ledger-sql.ts';

/** A record's fields and its text. */
export interface ReadRecord {
  record: LedgerFields;
  /** Without line ends. */
  body: string;
}

/** Of a batch with keys that have no row of spending. A row that was made is deleted by no statement. */
const MAX_TRIES = 3;

/**
 * Writes records to the ledger, adds their costs to what their keys have spent, and settles their reservations: all of it in one statement, or nothing.
 * Idempotent by generation id; a record that is in the ledger already still ends the reservation of its call. Any number of writers may run.
 *
 * @returns how many were not in the ledger yet
 * @throws the database's errors; `service.not_ready` when the rows of its keys vanish
 */
export async function writeUsage(database: Queryable, read: readonly ReadRecord[]): Promise<number> {
  const parameters = parametersOf(read);
  for (let tries = 1; tries <= MAX_TRIES; tries += 1) {
    // no fail point: caller
    const { rows } = await database.query<{ inserted: number; missing: string[] }>(WRITE_RECORDS, parameters);
    const [{ inserted, missing } = { inserted: 0, missing: [] }] = rows;
    if (missing.length === 0) return inserted;
    // no fail point, because rows without spending change nothing
    await database.query(beginSpend, [missing]);
  }
  throw new SwitchyardError('service.not_ready', 'the rows of what keys have spent are deleted as soon as they are made');
}

function parametersOf(read: readonly ReadRecord[]): unknown[] {
  const records = read.map(({ record }) => record);
  return [
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
  ];
}
