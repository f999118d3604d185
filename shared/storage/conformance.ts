import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Cache } from './cache.ts';
import { counterCases, slotCases, valueCases } from './conformance/cache-cases.ts';
import { commitStatementCases } from './conformance/commit-statement-cases.ts';
import { statementCases } from './conformance/statement-cases.ts';
import { transactionCases } from './conformance/transaction-cases.ts';
import { typeCases } from './conformance/type-cases.ts';
import type { Database } from './database.ts';

/** An embedded engine takes seconds to create its first database, more on a busy machine. */
const OPEN_TIMEOUT_MS = 240_000;

type OpenDatabase = () => Promise<{ database: Database; close(): Promise<void> }>;

/**
 * The conformance suite of `Database` drivers, written against the port alone: a new driver adds one call.
 * @param name of the driver, as a prefix of each case
 * @param open returns an empty database of its own; `close` also removes it
 */
export function databaseConformance(name: string, open: OpenDatabase): void {
  describe(`${name} database`, () => {
    let opened: Awaited<ReturnType<OpenDatabase>>;
    const database = () => opened.database;

    beforeAll(async () => {
      opened = await open();
    }, OPEN_TIMEOUT_MS);
    afterAll(() => opened?.close(), OPEN_TIMEOUT_MS);

    typeCases(name, database);
    statementCases(name, database);
    transactionCases(name, database);
    commitStatementCases(name, database);
    closingCases(name, open);
  });
}

function closingCases(name: string, open: OpenDatabase): void {
  it(
    `${name}: finishes what is in hand when it closes, and refuses everything after`,
    async () => {
      const { database, close } = await open();
      try {
        const inFlight = Promise.all([
          database.query<{ value: number }>('select 1 as value'),
          database.transaction((handle) => handle.query<{ value: number }>('select 2 as value')),
          database.query<{ value: number }>('select 3 as value'),
        ]);
        const closing = database.close();

        await expect(database.query('select 1')).rejects.toMatchObject({ code: 'storage.closed' });
        expect((await inFlight).map(({ rows }) => rows[0]?.value)).toEqual([1, 2, 3]);
        await closing;
        await expect(database.query('select 1')).rejects.toMatchObject({ code: 'storage.closed' });
        await expect(database.transaction(async () => 1)).rejects.toMatchObject({ code: 'storage.closed' });
        await database.close();
      } finally {
        await close();
      }
    },
    OPEN_TIMEOUT_MS,
  );
}

type OpenCache = () => Promise<{
  cache: Cache;
  /** Advances the cache's time: at once with a fake clock, by waiting with a server. */
  advance(ms: number): Promise<void>;
  close(): Promise<void>;
}>;

/**
 * The conformance suite of `Cache` drivers. Times to live are either far longer than the test or shorter than an `advance`, so that the cases also
 * hold on a server, where time can't be stopped.
 * @param open returns an empty cache; `close` also closes what is behind it
 */
export function cacheConformance(name: string, open: OpenCache): void {
  describe(`${name} cache`, () => {
    let opened: Awaited<ReturnType<OpenCache>>;
    const cache = () => opened.cache;
    const advance = (ms: number) => opened.advance(ms);

    beforeEach(async () => {
      opened = await open();
    });
    afterEach(() => opened?.close());

    valueCases(name, cache, advance);
    counterCases(name, cache, advance);
    slotCases(name, cache, advance);
  });
}
