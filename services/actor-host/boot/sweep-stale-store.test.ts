import { describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { useEmbeddedClusters } from '../test-support/embedded-clusters.ts';
import { idsIn, orphanSession, storeDelivery, storeOldRuns, sweepCases, sweepOf } from '../test-support/sweep-cases.ts';
import { eventually, type TestCluster } from '../test-support/test-cluster.ts';

const open = useEmbeddedClusters({
  openDatabase: () => openTestDatabase(),
  openBus: (database) => openMemoryBus({ database, clock: systemClock, log: silentLog }),
});

async function storeTombstone(cluster: TestCluster, id: string, days: number, seen: number): Promise<void> {
  await cluster.rows(
    `insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at, deleted_at)
     select $1, 0, 0, 1, '{}', '{}', at, at, at from (select now() - make_interval(days => $2::int) as at) as moment`,
    [id, days],
  );
  await cluster.rows('insert into seen (session_id, command_id) select $1, n::text from generate_series(1, $2::int) as n', [id, seen]);
}

sweepCases(open);

describe('a sweep', () => {
  it('deletes settled runs past their retention, with their steps and callbacks, and nothing that is younger or open', async () => {
    const cluster = await open();
    await storeOldRuns(cluster, 'old', 2, 31);
    await storeOldRuns(cluster, 'open', 1, 31);
    await storeOldRuns(cluster, 'running', 1, 31);
    await storeOldRuns(cluster, 'long', 1, 31);
    await storeOldRuns(cluster, 'live', 1, 31);
    await storeOldRuns(cluster, 'young', 1, 29);
    await cluster.rows(`update runs set state = 'running', completed_at = null, expires_at = now() + interval '1 hour' where id = 'running1'`);
    await cluster.rows(`update runs set completed_at = now() - interval '1 day' where id = 'long1'`);
    await cluster.rows(
      `insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at)
       values ('ses_live1', 0, 0, 1, '{"session":{"value":"responding"}}', '{}', now(), now())`,
    );
    const runs = await idsIn(cluster, 'runs');
    for (const id of runs) {
      await storeDelivery(cluster, id, id === 'open1' ? 'open' : 'delivered');
      await cluster.rows(`insert into steps (run_id, seq, session_id, message) values ($1, 0, 's', '{}'), ($1, 1, 's', '{}')`, [id]);
      await cluster.rows(`insert into run_calls (run_id, effect_id, outcome, ended_at) values ($1, 'e', '{}', now())`, [id]);
    }

    expect(await sweepOf(cluster).swept).toEqual({
      overdue_runs: 0,
      orphaned_sessions: 0,
      old_runs: 2,
      old_webhook_deliveries: 0,
      old_tombstones: 0,
      old_effects: 0,
      old_dead_letters: 0,
      old_first_replies: 0,
      old_evaluations: 0,
      missing_customers: 0,
      orphaned_customers: 0,
    });

    const left = runs.filter((id) => !id.startsWith('old'));
    expect(await idsIn(cluster, 'runs')).toEqual(left);
    expect((await cluster.rows<{ run_id: string }>('select distinct run_id from steps order by 1')).map((row) => row.run_id)).toEqual(left);
    expect((await cluster.rows<{ run_id: string }>('select run_id from run_calls order by 1')).map((row) => row.run_id)).toEqual(left);
    expect((await cluster.rows<{ run_id: string }>('select run_id from deliveries order by 1')).map((row) => row.run_id)).toEqual(left);
  });

  it('deletes deliveries of webhooks past their retention, but for those that still have a run', async () => {
    const cluster = await open();
    await storeOldRuns(cluster, 'old', 1, 31);
    await storeOldRuns(cluster, 'late', 1, 29);
    await cluster.rows(`update runs set idempotency_key = 'wh:a:' || id`);
    await cluster.rows(
      `insert into webhook_deliveries (key, webhook, matched, received_at)
       select 'wh:a:' || id, 'a', array['other', routine_id], now() - interval '31 days' from runs
       union all values ('wh:a:none', 'a', '{}'::text[], now() - interval '31 days'), ('wh:a:young', 'a', '{}', now() - interval '29 days')`,
    );

    expect(await sweepOf(cluster).swept).toMatchObject({ old_runs: 1, old_webhook_deliveries: 2 });
    expect((await cluster.rows<{ key: string }>('select key from webhook_deliveries order by key')).map(({ key }) => key)).toEqual([
      'wh:a:late1',
      'wh:a:young',
    ]);
  });

  it('leaves a session in which another run begins before its owner gets the deletion', async () => {
    const cluster = await open();
    await cluster.host();
    await orphanSession(cluster, 'run_first', 'ses_shared');
    const append: TestCluster['bus']['commands']['append'] = async (...command) => {
      const begun = cluster.nextCall();
      await cluster.startRun({ id: 'run_second', sessionId: 'ses_shared', ephemeral: false });
      await begun;
      return cluster.bus.commands.append(...command);
    };

    expect(await sweepOf(cluster, { bus: { commands: { ...cluster.bus.commands, append }, hasCapacity: () => true } }).swept).toMatchObject({
      orphaned_sessions: 1,
    });
    await eventually(async () => (await cluster.count('seen', `command_id like 'ses_shared-delete-%'`)) === 1);
    expect(await cluster.rows('select state from runs order by id')).toEqual([{ state: 'succeeded' }, { state: 'running' }]);
    expect(await cluster.count('sessions', 'deleted_at is not null')).toBe(0);
  });

  it('deletes the rows of deleted sessions, however many processed commands, unless something is in flight for them', async () => {
    const cluster = await open();
    await storeTombstone(cluster, 'old', 31, 12_000);
    await storeTombstone(cluster, 'young', 29, 3);
    await storeTombstone(cluster, 'ses_waits', 31, 3);
    await storeDelivery(cluster, 'waits', 'open');
    await storeTombstone(cluster, 'ses_works', 31, 3);
    await cluster.acceptRun({ id: 'works', sessionId: 'ses_works' });

    expect(await sweepOf(cluster).swept).toMatchObject({ old_tombstones: 1 });

    expect(await idsIn(cluster, 'sessions')).toEqual(['ses_waits', 'ses_works', 'young']);
    expect(await cluster.rows('select session_id as id, count(*) as n from seen group by 1 order by 1')).toEqual([
      { id: 'ses_waits', n: 3 },
      { id: 'ses_works', n: 3 },
      { id: 'young', n: 3 },
    ]);
  });

  it('deletes dead letters that were stored while their session was deleted', async () => {
    const cluster = await open();
    await storeTombstone(cluster, 'ses_deleted', 1, 1);
    await storeTombstone(cluster, 'ses_ephemeral', 1, 1);
    await cluster.acceptRun({ id: 'run_1', sessionId: 'ses_ephemeral', ephemeral: true });
    for (const session of ['ses_deleted', 'ses_ephemeral', 'ses_open'])
      await cluster.rows(`insert into dead_letters (id, p, source, reason, body, created_at) values ($1, 0, 'tool', 'r', $2, now())`, [
        session,
        JSON.stringify({ v: 1, sessionId: session }),
      ]);

    expect(await sweepOf(cluster).swept).toMatchObject({ old_dead_letters: 1 });
    expect(await idsIn(cluster, 'dead_letters')).toEqual(['ses_ephemeral', 'ses_open']);
  });

  it('deletes dead letters past their retention', async () => {
    const cluster = await open();
    for (const days of [29, 31, 31])
      await cluster.rows(
        `insert into dead_letters (id, p, source, reason, body, created_at) values ($1::text, 0, 'command', 'r', 'b', now() - make_interval(days => $1::int))`,
        [days],
      );

    expect(await sweepOf(cluster).swept).toMatchObject({ old_dead_letters: 2 });
    expect(await idsIn(cluster, 'dead_letters')).toEqual(['29']);
  });

  it('stores the customers of sessions without one, as of an earlier release, and lists these by them', async () => {
    const cluster = await open();
    const store = (id: string, customer: string | null, record: object, deleted = false) =>
      cluster.rows(
        `insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at, deleted_at, customer_id)
         values ($1, 0, 0, 1, '{}', $2::json, '2026-01-01', '2026-01-01', case when $3 then now() end, $4)`,
        [id, JSON.stringify(record), deleted, customer],
      );
    await store('early', null, { customer_id: 'ada', ephemeral: false, title: '\u0000', metadata: { half: '\ud800' } });
    await store('early too', null, { customer_id: 'ada', ephemeral: false });
    await store('written since', 'bea', { customer_id: 'bea', ephemeral: false });
    await store('of a run', null, { customer_id: 'cus_run', ephemeral: true });
    await store('of no valid customer', null, { customer_id: 'tag:vip', ephemeral: false });
    await store('deleted', null, { customer_id: 'gone', ephemeral: false }, true);

    expect(await sweepOf(cluster).swept).toMatchObject({ missing_customers: 3, orphaned_customers: 0 });

    expect(await cluster.rows('select id, ephemeral from customers order by id')).toEqual([
      { id: 'ada', ephemeral: false },
      { id: 'bea', ephemeral: false },
      { id: 'cus_run', ephemeral: true },
    ]);
    expect(await cluster.rows('select id, customer_id from sessions where customer_id is not null order by id')).toEqual([
      { id: 'early', customer_id: 'ada' },
      { id: 'early too', customer_id: 'ada' },
      { id: 'of a run', customer_id: 'cus_run' },
      { id: 'written since', customer_id: 'bea' },
    ]);
    expect(await sweepOf(cluster).swept).toMatchObject({ missing_customers: 0, orphaned_customers: 0 });
  });

  it('deletes customers of runs whose session is gone, and no other', async () => {
    const cluster = await open();
    const store = (id: string, ephemeral: boolean, minutes: number) =>
      cluster.rows(
        `insert into customers (id, name, ephemeral, created_at, updated_at) select $1, 'Guest', $2, at, at from (select now() - make_interval(mins => $3::int) as at) as moment`,
        [id, ephemeral, minutes],
      );
    await store('orphaned', true, 2);
    await store('young', true, 0);
    await store('guest', false, 2);
    await store('with a session', true, 2);
    await cluster.rows(
      `insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at, customer_id)
       values ('ses', 0, 0, 1, '{}', '{}', now(), now(), 'with a session')`,
    );

    expect(await sweepOf(cluster).swept).toMatchObject({ orphaned_customers: 1 });
    expect(await idsIn(cluster, 'customers')).toEqual(['guest', 'with a session', 'young']);
  });

  it('deletes first replies past their retention', async () => {
    const cluster = await open();
    for (const days of [29, 31])
      await cluster.rows(`insert into first_replies (id, status, created_at) values ($1::text, 204, now() - make_interval(days => $1::int))`, [days]);

    expect(await sweepOf(cluster).swept).toMatchObject({ old_first_replies: 1 });
    expect(await idsIn(cluster, 'first_replies')).toEqual(['29']);
  });

  it('deletes evaluations of documents that no start has used for as long', async () => {
    const cluster = await open();
    for (const days of [29, 31])
      await cluster.rows(
        `insert into evaluations (hash, kind, evaluated_at, used_at) values ($1::text, 'node', now() - interval '90 days', now() - make_interval(days => $1::int))`,
        [days],
      );

    expect(await sweepOf(cluster).swept).toMatchObject({ old_evaluations: 1 });
    expect(await cluster.rows('select hash from evaluations')).toEqual([{ hash: '29' }]);
  });

  it('deletes 500 at a time, until nothing is left', async () => {
    const cluster = await open();
    await storeOldRuns(cluster, 'old', 1_100, 31);
    const taken: number[] = [];
    const database: Database = {
      ...cluster.database,
      transaction: async (work) => {
        const before = await cluster.count('runs');
        const result = await cluster.database.transaction(work);
        taken.push(before - (await cluster.count('runs')));
        return result;
      },
    };

    expect(await sweepOf({ ...cluster, database }).swept).toMatchObject({ old_runs: 1_100 });
    expect(taken).toEqual([500, 500, 100]);
  });

  it('is made by one of the hosts that begin together, and by the next once that one is done or has long been silent', async () => {
    const cluster = await open();
    await storeOldRuns(cluster, 'old', 1_100, 31);
    const together = [sweepOf(cluster, { pauseMs: 100 }), sweepOf(cluster, { pauseMs: 100 }), sweepOf(cluster, { pauseMs: 100 })];

    const outcomes = await Promise.all(together.map(({ swept }) => swept));
    expect(outcomes.filter((outcome) => outcome !== null)).toMatchObject([{ old_runs: 1_100 }]);
    expect(await sweepOf(cluster).swept).not.toBeNull();
    const lease = (until: string) =>
      cluster.rows(`insert into meta (key, value) values ('stale-store-sweep', json_build_object('sweep', 'x', 'until', now() + $1::interval)::text)`, [until]);
    await lease('30 seconds');
    expect(await sweepOf(cluster).swept).toBeNull();
    await cluster.rows(`delete from meta where key = 'stale-store-sweep'`);
    await lease('-1 second');
    expect(await sweepOf(cluster).swept).not.toBeNull();
    expect(await cluster.count('meta', `key = 'stale-store-sweep'`)).toBe(0);
    expect(await cluster.count('meta', `key = 'stale-store-turn'`)).toBe(1);
  });

  it('ends at once when its host stops, before it has begun and between two batches', async () => {
    const cluster = await open();
    await storeOldRuns(cluster, 'old', 600, 31);
    const config = { delayMs: 60_000, retentionMs: 1, pauseMs: 60_000 };
    const waiting = sweepOf(cluster, { config });
    await waiting.stop();
    expect(await waiting.swept).toBeNull();
    expect(await cluster.count('runs')).toBe(600);

    const begun = sweepOf(cluster, { config: { ...config, delayMs: 1 } });
    // The first kinds scan all runs in batches, and the pause after the first batch is long.
    await eventually(async () => (await cluster.count('meta', `key = 'stale-store-sweep'`)) === 1);
    await begun.stop();

    expect(await begun.swept).toBeNull();
    expect(await cluster.count('runs')).toBe(600);
    expect(await cluster.count('meta', `key = 'stale-store-sweep'`)).toBe(0);
  });

  it('sends nothing while the bus has no capacity, and goes on when it has', async () => {
    const cluster = await open();
    await cluster.acceptRun({ id: 'run_a', sessionId: 'ses_a', expiresInMs: -120_000 });
    let looks = 0;
    const hasCapacity = () => {
      looks += 1;
      return looks > 3;
    };
    const sentAfter: number[] = [];
    const append: TestCluster['bus']['commands']['append'] = (...command) => {
      sentAfter.push(looks);
      return cluster.bus.commands.append(...command);
    };

    expect(await sweepOf(cluster, { bus: { commands: { ...cluster.bus.commands, append }, hasCapacity } }).swept).toMatchObject({ overdue_runs: 1 });
    expect(sentAfter).toEqual([4]);
  });

  it('is tried again when the database was away, and given up when it is refused', async () => {
    const cluster = await open();
    const failing = (faults: Error[]): Database => ({
      ...cluster.database,
      query: async (statement, parameters) => {
        const fault = faults.shift();
        if (fault !== undefined) throw fault;
        return cluster.database.query(statement, parameters);
      },
    });
    const away = () => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });

    expect(await sweepOf({ ...cluster, database: failing([away(), away()]) }).swept).not.toBeNull();
    expect(await sweepOf({ ...cluster, database: failing(Array.from({ length: 5 }, away)) }).swept).toBeNull();
    expect(await sweepOf({ ...cluster, database: failing([new Error('permission denied')]) }).swept).toBeNull();
  });
});

describe('repeated sweeps', () => {
  const repeating = { delayMs: 1, retentionMs: 30 * 24 * 60 * 60 * 1_000, pauseMs: 0, retryMs: 1, everyMs: 20 };
  const storeOldReply = (cluster: TestCluster) =>
    cluster.rows(`insert into first_replies (id, status, created_at) values ('old', 204, now() - interval '31 days')`);

  it('delete what has become old since the first', async () => {
    const cluster = await open();
    const sweep = sweepOf(cluster, { config: repeating });
    await sweep.swept;

    await storeOldReply(cluster);

    await eventually(async () => (await cluster.count('first_replies')) === 0);
    await sweep.stop();
  });

  it('are left to the host whose turn it is', async () => {
    const cluster = await open();
    await cluster.rows(`insert into meta (key, value) values ('stale-store-turn', json_build_object('sweep', 'x', 'until', now() + interval '1 hour')::text)`);
    let asked = 0;
    const database: Database = {
      ...cluster.database,
      query: (statement, parameters) => {
        if (parameters?.[0] === 'stale-store-turn') asked += 1;
        return cluster.database.query(statement, parameters);
      },
    };
    const sweep = sweepOf({ ...cluster, database }, { config: repeating });
    await sweep.swept;
    await storeOldReply(cluster);

    await eventually(() => asked >= 3);

    expect(await cluster.count('first_replies')).toBe(1);
    await cluster.rows(`update meta set value = json_build_object('sweep', 'x', 'until', now() - interval '1 second')::text where key = 'stale-store-turn'`);
    await eventually(async () => (await cluster.count('first_replies')) === 0);
    await sweep.stop();
  });

  it('leave the store to another host when they fail', async () => {
    const cluster = await open();
    let refused = 0;
    const database: Database = {
      ...cluster.database,
      query: async (statement, parameters) => {
        if (typeof statement === 'string' && statement.includes('first_replies')) {
          refused += 1;
          throw new Error('permission denied');
        }
        return cluster.database.query(statement, parameters);
      },
    };
    const failing = sweepOf({ ...cluster, database }, { config: repeating });
    await eventually(() => refused >= 2);
    await failing.stop();
    expect(await cluster.count('meta', `key = 'stale-store-turn'`)).toBe(0);
  });
});
