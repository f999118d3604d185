import { expect, inject, it } from 'vitest';
import { freshDatabase } from '../storage/conformance/fresh-database.ts';
import type { Database } from '../storage/database.ts';
import { migrate } from '../storage/migrate.ts';
import { openPostgres } from '../storage/postgres/open-postgres.ts';
import { silentLog } from '../telemetry/log.ts';
import { beginSpend, releaseCalls, reserveCalls, reserveTogether } from './reservation-statements.ts';

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  Plans?: PlanNode[];
}

function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

async function fill(database: Database, calls: number, reserved: number): Promise<void> {
  await database.query(
    `insert into usage_ledger (generation_id, key_id, created_at, model, provider, prompt_tokens, completion_tokens, reasoning_tokens, cost_nano, record)
      select 'gen-' || n, 'key', now(), 'm', 'p', 1, 1, 0, 1, '{}' from generate_series(1, $1::int) n`,
    [calls],
  );
  await database.query(
    `insert into reservations (call_id, key_id, amount_nano, until) select 'res-' || n, 'key', 1, now() from generate_series(1, $1::int) n`,
    [reserved],
  );
  await database.query('analyze usage_ledger, reservations');
}

const statements = [
  { ...reserveCalls, types: 'text[], text[], bigint[], bigint[], text[], bigint[]', values: `'{a}', '{key}', '{1}', '{1}', '{""}', '{1}'` },
  { ...reserveTogether, types: 'text, text[], bigint[], bigint[], bigint, bigint, text', values: `'key', '{a}', '{1}', '{1}', 1, 1, ''` },
];

const ledgers: { ledger: string; size: [calls: number, reserved: number] | null; mayScanReservations: boolean }[] = [
  { ledger: 'empty and was never analysed', size: null, mayScanReservations: false },
  // Autovacuum analyses a table after 50 rows.
  { ledger: 'analysed with 50 records', size: [50, 1], mayScanReservations: true },
  { ledger: 'analysed with 600 records', size: [600, 20], mayScanReservations: true },
  { ledger: 'large', size: [20_000, 5_000], mayScanReservations: false },
];

// A connection keeps the plan of its first calls until the tables are analysed, which is after a minute in a new deployment.
it.each(ledgers.flatMap((ledger) => statements.map((statement) => ({ ...statement, ...ledger }))))(
  'looks for a repeated call in the ledger by its index, also with a plan made while it is $ledger: $name',
  async ({ text, types, values, size, mayScanReservations }) => {
    const fresh = await freshDatabase(inject('postgresUrl'));
    const database = await openPostgres({ url: fresh.url, applicationName: 'reservation-plan', log: silentLog });
    try {
      await migrate(database);
      if (size !== null) await fill(database, ...size);
      const plan = await database.transaction(async (handle) => {
        // The plan of a statement that has run more than five times.
        await handle.query(`set local plan_cache_mode = force_generic_plan`);
        await handle.query(`prepare reserving (${types}) as ${text}`);
        const { rows } = await handle.query<{ 'QUERY PLAN': { Plan: PlanNode }[] }>(`explain (format json) execute reserving (${values})`);
        return rows[0]?.['QUERY PLAN'][0]?.Plan;
      });
      if (plan === undefined) throw new Error('there is no plan');
      const readersOf = (table: string) =>
        nodesOf(plan)
          .filter((node) => node['Relation Name'] === table && node['Node Type'] !== 'ModifyTable')
          .map((node) => node['Node Type']);
      expect(readersOf('usage_ledger')).toEqual(['Index Only Scan']);
      // One with a few rows may be scanned: it holds the calls in flight alone.
      expect(readersOf('reservations')).toEqual([mayScanReservations ? expect.any(String) : 'Index Only Scan']);
    } finally {
      await database.close();
      await fresh.drop();
    }
  },
);

it('is planned once per connection: planning a call takes longer than its execution', async () => {
  const fresh = await freshDatabase(inject('postgresUrl'));
  const database = await openPostgres({ url: fresh.url, applicationName: 'reservation-plan', log: silentLog });
  try {
    await migrate(database);
    await database.query(beginSpend, [['key']]);
    const planned = await database.transaction(async (handle) => {
      for (let call = 0; call < 20; call++) {
        await handle.query(reserveCalls, [[`call-${call}`], ['key'], [1], [1_000], [''], [60_000]]);
        await handle.query(reserveTogether, ['key', [`together-${call}`], [1], [60_000], 1, 1_000, '']);
        await handle.query(releaseCalls, [[`call-${call}`], ['key']]);
      }
      const { rows } = await handle.query(
        `select name, custom_plans::int, generic_plans::int from pg_prepared_statements where name <> 'begin-spend' order by name`,
      );
      return rows;
    });
    expect(planned).toEqual(['release-calls', 'reserve-calls', 'reserve-together'].map((name) => ({ name, custom_plans: 5, generic_plans: 15 })));
  } finally {
    await database.close();
    await fresh.drop();
  }
});
