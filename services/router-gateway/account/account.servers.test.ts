import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { mintGenerationId } from '#shared/generation-id.ts';
import { type FreshDatabase, freshDatabase } from '#shared/storage/conformance/fresh-database.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { type AccountApp, openAccountApp } from '../test-support/account-app.ts';
import { HOUSE_SECRET } from '../test-support/harness.ts';
import { storeUsage, usageRecordOf } from '../test-support/usage-rows.ts';

let fresh: FreshDatabase;
let database: Database;
let ofBus: Database;
let bus: Bus;
let opened: AccountApp;

beforeAll(async () => {
  fresh = await freshDatabase(inject('postgresUrl'));
  database = await openPostgres({ url: fresh.url, applicationName: 'account', log: silentLog });
  await migrate(database);
  ofBus = await openTestDatabase();
  bus = await openMemoryBus({ database: ofBus, clock: systemClock });
  opened = openAccountApp({ database, bus, clock: systemClock });
});
afterAll(async () => {
  await opened.close();
  await bus.close();
  await ofBus.close();
  await database.close();
  await fresh.drop();
});

/** Each statement of the plugin runs on a server, whose types and plans are not those of the embedded database. */
it('keys, credit, generations and activity work on a PostgreSQL server', async () => {
  const { asManager } = opened;
  const { key, data } = (await asManager('POST', '/keys', { name: 'Shop', limit: 5, limit_reset: 'weekly', expires_at: '2999-01-01T00:00:00Z' })).json();
  const [{ id = '' } = {}] = (await database.query<{ id: string }>('select id from router_keys where hash = $1', [data.hash])).rows;
  const generationId = mintGenerationId({ houseSecret: HOUSE_SECRET, origin: 'gtest', keyId: id, nowMs: Date.now() });
  await storeUsage(database, usageRecordOf({ generationId, keyId: id, createdAtMs: Date.now(), user: 'a\u0000b' }));
  await database.query(
    `insert into key_spend (key_id, total_nano, day, day_nano, week, week_nano, month, month_nano, reserved_nano)
      values ($1, 2000000000, now() at time zone 'utc', 0, date_trunc('week', now() at time zone 'utc'), 1000000000, now() at time zone 'utc', 0, 500000000)`,
    [id],
  );
  const asKey = opened.asKey(key);

  expect((await asKey('GET', '/key')).json().data).toMatchObject({ limit: 5, limit_remaining: 3.5, usage: 2, usage_weekly: 1 });
  // 3.5 are left here, and 2 of the key of the file.
  expect((await asManager('GET', '/credits')).json().data).toEqual({ total_credits: 7.5, total_usage: 2 });
  expect((await asManager('GET', '/keys')).json().data.at(-1)).toMatchObject({ hash: data.hash, limit_remaining: 3.5 });
  expect((await asKey('GET', `/generation?id=${generationId}`)).json().data).toMatchObject({ id: generationId, external_user: 'a\u0000b' });
  expect((await asKey('GET', '/activity')).json().data).toMatchObject([{ requests: 1, reasoning_tokens: 5, usage: 0.0012 }]);
  expect((await asManager('GET', '/activity')).json().data).toMatchObject([{ api_key_hash: data.hash }]);
  expect((await asManager('DELETE', `/keys/${data.hash}`)).json()).toEqual({ deleted: true });
});

it('changes of one key at once all take effect, each field as it was set last', async () => {
  const { data } = (await opened.asManager('POST', '/keys', { name: 'Shop' })).json();
  const changes = {
    name: 'Other',
    limit: 7,
    limit_reset: 'daily',
    owner_email: 'a@example.com',
    requests_per_minute: 1,
    tokens_per_minute: 2,
    calls_at_once: 3,
  };

  const answers = await Promise.all(Object.entries(changes).map(([field, value]) => opened.asManager('PATCH', `/keys/${data.hash}`, { [field]: value })));

  expect(answers.map(({ statusCode }) => statusCode)).toEqual(answers.map(() => 200));
  expect((await opened.asManager('GET', `/keys/${data.hash}`)).json().data).toMatchObject(changes);
});
