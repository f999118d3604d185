import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { type FreshDatabase, freshDatabase } from '#shared/storage/conformance/fresh-database.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { MailRows } from './mail-rows.ts';

const LEASE_MS = 60_000;

let fresh: FreshDatabase;
let database: Database;
let otherDatabase: Database;

beforeAll(async () => {
  fresh = await freshDatabase(inject('postgresUrl'));
  const open = () => openPostgres({ url: fresh.url, applicationName: 'mails', log: silentLog });
  [database, otherDatabase] = await Promise.all([open(), open()]);
  await migrate(database);
});
afterAll(async () => {
  await Promise.all([database?.close(), otherDatabase?.close()]);
  await fresh?.drop();
});

async function queueMails(count: number): Promise<void> {
  await database.query(
    {
      name: 'queue-mails',
      text: `insert into mails (id, kind, recipient, key_id, key_name, key_label, exposed_at, exposed_where)
      select 'mail_' || n, 'key-exposed', 'owner@example.com', 'key_' || n, 'shop', 'sk-sy-v1-abc...def', now(), 'a page' from generate_series(1, $1::int) n`,
    },
    [count],
  );
}

it('mails that another process is claiming are neither waited for nor claimed twice', async () => {
  await queueMails(4);
  const rows = new MailRows(database);

  await otherDatabase.transaction(async (other) => {
    const first = await new MailRows(other).claim(2, LEASE_MS);
    // The transaction of the other process is still open.
    const second = await rows.claim(10, LEASE_MS);
    expect([first.length, second.length]).toEqual([2, 2]);
    expect(new Set([...first, ...second].map(({ id }) => id)).size).toBe(4);
  });
  expect(await rows.claim(10, LEASE_MS)).toEqual([]);
});
