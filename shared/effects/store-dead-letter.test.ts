import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Database } from '../storage/database.ts';
import { migrate } from '../storage/migrate.ts';
import { openTestDatabase } from '../storage/pglite/test-support/open-test-database.ts';
import { storeDeadLetter } from './store-dead-letter.ts';

let database: Database;
beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
  await database.query(
    `insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at, deleted_at)
     select id, 3, 0, 1, '{}', '{}', now(), now(), deleted_at from (values ('ses_open', null), ('ses_deleted', now())) as s (id, deleted_at)`,
  );
});
afterAll(() => database.close());

it('stores a dead letter once, with its session, and none of a session that is deleted', async () => {
  for (const sessionId of ['ses_open', 'ses_open', 'ses_deleted', null]) {
    const letter = { id: `eff_${sessionId}`, source: 'tool', partition: sessionId === null ? null : 3, sessionId, reason: 'r' } as const;
    await storeDeadLetter(database, { ...letter, body: JSON.stringify({ v: 1, sessionId }) });
  }
  const { rows } = await database.query('select id, session_id from dead_letters order by id');
  expect(rows).toEqual([
    { id: 'eff_null', session_id: null },
    { id: 'eff_ses_open', session_id: 'ses_open' },
  ]);
});
