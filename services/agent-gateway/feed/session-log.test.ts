import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { limits } from '../limits.ts';
import { type EventFilter, everything, SessionLog } from './session-log.ts';

const SESSION = 'ses_pages';
/** Texts that a parse and a write would change: spaces, escapes, numbers beyond doubles, keys that repeat. */
const BODIES = [
  '{"text":"plain"}',
  '{ "text" : "sp\\u0061ced" ,\n "more":[ ] }',
  '{"n":12345678901234567890.0001e2,"n":1}',
  '{"text":"\u20ac \ud83d\ude00 \\ud83d\\ude00 \\"quoted\\""}',
];
const KINDS = ['user_message', 'assistant_message', 'status'];
const EVENTS = 60;

let database: Database;
/** Rows that the queries since the last look returned. */
let rowsRead = 0;
let log: SessionLog;

beforeAll(async () => {
  database = await openTestDatabase();
  await storeSession(SESSION, EVENTS);
  for (let off = 0; off < EVENTS; off += 1) {
    await database.query(
      'insert into events (session_id, off, id, kind, source, trace_id, body, created_at, deleted_at) values ($1, $2, $3, $4, $5, $6, $7, now(), $8)',
      [SESSION, off, `evt_${off}`, KINDS[off % 3], off % 2 === 0 ? 'customer' : 'ai_agent', `t${off % 5}`, BODIES[off % 4], off % 11 === 7 ? new Date() : null],
    );
  }
  log = new SessionLog({
    query: async (...given) => {
      const result = await database.query<never>(...given);
      rowsRead += result.rows.length;
      return result;
    },
  });
});
afterAll(() => database.close());

async function storeSession(id: string, head: number): Promise<void> {
  await database.query(
    "insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at) values ($1, 0, $2, 1, '{}', '{}', now(), now())",
    [id, head],
  );
}

const filters = fc.record({
  kinds: fc.option(fc.subarray(KINDS, { minLength: 1 })),
  source: fc.option(fc.constantFrom('customer', 'ai_agent', 'system')),
  traceId: fc.option(fc.constantFrom('t0', 't4', 'none')),
}) satisfies fc.Arbitrary<EventFilter>;

describe('a page that the database has joined', () => {
  it('has the bytes, the order and the end of the page that is read row by row', async () => {
    await fc.assert(
      fc.asyncProperty(filters, fc.integer({ min: 0, max: EVENTS + 3 }), fc.integer({ min: 1, max: EVENTS + 3 }), async (filter, minOffset, limit) => {
        const page = await log.read(SESSION, filter, minOffset, limit);
        const { pieces, ...end } = (await log.readText(SESSION, filter, minOffset, limit)) ?? expect.fail('there is such a session');

        expect(pieces.join(',')).toBe(page?.events.map((event) => event.text).join(','));
        expect(end).toEqual({ count: page?.events.length, head: page?.head, next: page?.next });
      }),
      { numRuns: 60 },
    );
  });

  it('comes as one row for each piece, not for each event', async () => {
    rowsRead = 0;
    const page = await log.readText(SESSION, everything, 0, 1_000);

    expect(page?.count).toBeGreaterThan(50);
    expect(rowsRead).toBe(1);
  });

  it('is cut between events where a piece has its size, in the order of the log', async () => {
    const text = 'ä'.repeat(limits.pagePieceBytes / 8);
    await storeSession('ses_pieces', 40);
    for (let off = 0; off < 40; off += 1) {
      await database.query(
        "insert into events (session_id, off, id, kind, source, trace_id, body, created_at) values ('ses_pieces', $1, $2, 'status', 'system', 't', $3, now())",
        [39 - off, `evt_piece_${off}`, JSON.stringify({ offset: 39 - off, text })],
      );
    }
    const page = await log.readText('ses_pieces', everything, 0, 1_000);

    const pieces = page?.pieces.map((piece) => JSON.parse(`[${piece}]`).map((event: { offset: number }) => event.offset)) ?? [];
    expect(pieces.flat()).toEqual(Array.from({ length: 40 }, (_, off) => off));
    expect(Math.max(...pieces.map((offsets) => offsets.length))).toBe(4);
    expect(page).toMatchObject({ count: 40, head: 40, next: 40 });
    expect(await log.readText('ses_pieces', everything, 0, 10)).toMatchObject({ count: 10, next: 10 });
  });

  it('ends with the event that reaches the limit in bytes, and has at least one', async () => {
    const large = 'x'.repeat(limits.pageBytes / 2 + 1);
    await storeSession('ses_large', 4);
    for (const [off, text] of [large + large, large, large, large].entries()) {
      await database.query(
        "insert into events (session_id, off, id, kind, source, trace_id, body, created_at) values ('ses_large', $1, $2, 'status', 'system', 't', $3, now())",
        [off, `evt_large_${off}`, JSON.stringify({ text })],
      );
    }
    const ends = async (from: number) => {
      const page = await log.readText('ses_large', everything, from, 1_000);
      return [page?.count, page?.next];
    };

    expect(await ends(0)).toEqual([1, 1]);
    expect(await ends(1)).toEqual([2, 3]);
    expect(await ends(3)).toEqual([1, 4]);
  });

  it('is null for a session that there is not, and empty past the end', async () => {
    expect(await log.readText('ses_none', everything, 0, 10)).toBeNull();
    expect(await log.readText(SESSION, everything, EVENTS + 9, 10)).toEqual({ pieces: [], count: 0, head: EVENTS, next: EVENTS + 9 });
  });
});
