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

it('takes the session of a model call from the call, not from what its request contains', async () => {
  const examples = [{ sessionId: 'ses_other', callId: 'x', origin: 'ses_other' }];
  const request = { messages: [], tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', examples } } }] };
  const call = { v: 1, callId: 'eff_call', origin: 'ses_open', want: 'parts', request, reply: { sessionId: 'ses_open' } };
  const letter = { id: 'eff_call', source: 'call', partition: 3, sessionId: 'ses_open', reason: 'r' } as const;

  await storeDeadLetter(database, { ...letter, body: JSON.stringify(call) });

  const { rows } = await database.query("select session_id from dead_letters where id = 'eff_call'");
  expect(rows).toEqual([{ session_id: 'ses_open' }]);
});
