import { expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { systemClock } from '#shared/clock.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { type StaleStoreDeps, startStaleStoreSweep } from '../boot/sweep-stale-store.ts';
import { calledTools } from './commands.ts';
import { eventually, type TestCluster } from './test-cluster.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;

/** A sweep without delays. */
export function sweepOf(cluster: Pick<TestCluster, 'bus' | 'database'>, changes: Partial<StaleStoreDeps> & { pauseMs?: number } = {}) {
  const { pauseMs = 0, ...deps } = changes;
  const config = { delayMs: 1, retentionMs: 30 * DAY_MS, pauseMs, retryMs: 1 };
  return startStaleStoreSweep({ config, bus: cluster.bus, database: cluster.database, clock: systemClock, log: silentLog, ...deps });
}

/** Runs that settled so many days ago, each in its own deleted session. */
export async function storeOldRuns(cluster: TestCluster, prefix: string, count: number, days: number): Promise<void> {
  await cluster.rows(
    `insert into runs (id, p, session_id, customer_id, ephemeral, routine_id, idempotency_key, bundle_hash, state, input, trace_id, timeout_ms, expires_at,
       created_at, started_at, completed_at)
     select $1 || n, 0, 'ses_' || $1 || n, 'cus_1', true, 'triage', $1 || n, 'b', 'succeeded', '{}', 'f', 1000, at, at, at, at
     from generate_series(1, $2::int) as n, (select now() - make_interval(days => $3::int) as at) as moment`,
    [prefix, count, days],
  );
}

/** A run with a delivered callback, of which the report was lost with a log. */
export async function orphanSession(cluster: TestCluster, runId: string, sessionId: string): Promise<void> {
  const next = cluster.nextCall();
  await cluster.startRun({ id: runId, sessionId });
  const { callId } = await next;
  await cluster.send(calledTools(sessionId, callId, [{ id: 'c1', name: 'emit_output', arguments: { verdict: 'refund' } }]));
  await eventually(async () => (await cluster.count('deliveries', `run_id = '${runId}'`)) === 1);
  await cluster.rows(`update deliveries set state = 'delivered', settled_at = now() where run_id = $1`, [runId]);
  await cluster.rows(`update runs set completed_at = now() - interval '2 minutes' where id = $1`, [runId]);
}

export async function storeDelivery(cluster: TestCluster, runId: string, state: string): Promise<void> {
  await cluster.rows(
    `insert into deliveries (id, p, session_id, run_id, url, host_allowlist, bundle_hash, idempotency_key, trace_id, body, state, created_at)
     values ($1 || '-callback', 0, 'ses_' || $1, $1, 'https://example.com/', 'null', 'b', 'k', 'f', '{}', $2, now())`,
    [runId, state],
  );
}

export const idsIn = async (cluster: TestCluster, table: string) =>
  (await cluster.rows<{ id: string }>(`select id from ${table} order by id`)).map(({ id }) => id);

/** Cases of sweeps: commands to owners, and rows deleted by `ctid`, for any driver. */
export function sweepCases(open: () => Promise<TestCluster>): void {
  it('DESIGN 4: a sweep has sessions deleted by their owners: those of settled ephemeral runs, with nothing left to deliver', async () => {
    const cluster = await open();
    await cluster.host();
    await orphanSession(cluster, 'run_stale', 'ses_stale');
    await orphanSession(cluster, 'run_open', 'ses_open');
    await orphanSession(cluster, 'run_young', 'ses_young');
    await orphanSession(cluster, 'run_busy', 'ses_busy');
    await orphanSession(cluster, 'run_first', 'ses_shared');
    await cluster.rows(`update deliveries set state = 'open' where run_id = 'run_open'`);
    await cluster.rows(`update runs set completed_at = now() where id = 'run_young'`);
    await cluster.rows(`update sessions set snapshot = '{"session":{"value":"responding"}}' where id = 'ses_busy'`);
    await cluster.rows(`insert into seen (session_id, command_id) values ('ses_shared', 'run_second')`);
    await cluster.acceptRun({ id: 'run_second', sessionId: 'ses_shared' });

    expect(await sweepOf(cluster).swept).toMatchObject({ orphaned_sessions: 1, overdue_runs: 0, old_runs: 0 });
    await eventually(async () => (await cluster.count('sessions', 'deleted_at is not null')) === 1);

    expect(await cluster.rows('select id from sessions where deleted_at is not null')).toEqual([{ id: 'ses_stale' }]);
    expect(await cluster.count('events', `session_id = 'ses_stale'`)).toBe(0);
    // The processed command shows that the owner deleted it. The run's row stays for its retention.
    expect(await cluster.count('seen', `session_id = 'ses_stale' and command_id like 'ses_stale-delete-%'`)).toBe(1);
    expect(await cluster.count('runs', `state = 'succeeded'`)).toBe(5);
    expect(await sweepOf(cluster).swept).toMatchObject({ orphaned_sessions: 0 });
  });

  it('DESIGN 4: a sweep has runs past their hard deadline settled by their owners, once, with their callbacks', async () => {
    const cluster = await open();
    // Their start was applied, then everything but the rows was lost: the owner does not start them again, and has no timer.
    for (const [id, expiresInMs] of [
      ['run_stale', -120_000],
      ['run_young', -1_000],
    ] as const) {
      const sessionId = `ses_${id}`;
      await cluster.acceptRun({ id, sessionId, expiresInMs, ephemeral: false });
      await cluster.rows('insert into seen (session_id, command_id) values ($1, $2)', [sessionId, id]);
    }
    await cluster.host();

    expect(await sweepOf(cluster).swept).toMatchObject({ overdue_runs: 1 });
    await eventually(async () => (await cluster.count('runs', `state = 'failed'`)) === 1);

    expect(await cluster.rows('select id, state, error from runs order by id')).toMatchObject([
      { id: 'run_stale', state: 'failed', error: { code: 'timeout', details: { timeout_seconds: 60 } } },
      { id: 'run_young', state: 'accepted' },
    ]);
    expect(await cluster.rows('select run_id, state from deliveries')).toEqual([{ run_id: 'run_stale', state: 'open' }]);
    expect(await sweepOf(cluster).swept).toMatchObject({ overdue_runs: 0 });
  });

  it('does not change a run that has settled before its owner gets the command of the sweep', async () => {
    const cluster = await open();
    await cluster.host();
    // The input breaks the schema: the run settles at once.
    await cluster.startRun({ id: 'run_a', sessionId: 'ses_a', input: {} });
    await eventually(async () => (await cluster.count('runs', `state = 'failed'`)) === 1);
    const late = {
      v: 1,
      type: 'run.deadline',
      sessionId: 'ses_a',
      commandId: 'late',
      sentAtMs: 0,
      answerTo: null,
      traceparent: null,
      ...actorFields('run_a'),
    } as const;
    await cluster.send(late);
    await eventually(async () => (await cluster.count('seen', `command_id = 'late'`)) === 1);

    expect(await cluster.rows('select state, error from runs')).toMatchObject([{ state: 'failed', error: { code: 'input_validation_failed' } }]);
    expect(await cluster.count('deliveries')).toBe(1);
  });

  it('a sweep deletes rows that nothing waits for any more, wherever in their table, and none that is younger, open, or of active work', async () => {
    const cluster = await open();
    const store = (ids: string, state: string, days: number, of: string, count = 1) =>
      cluster.rows(
        `insert into effects (id, p, session_id, turn_id, kind, state, inputs, created_at)
         select $1::text || case when $5::int = 1 then '' else n::text end, 0, 's', $4, 'compose', $2, '{}', now() - make_interval(days => $3::int)
         from generate_series(1, $5::int) as n`,
        [ids, state, days, of, count],
      );
    await cluster.acceptRun({ id: 'works', sessionId: 'ses_works' });
    await storeDelivery(cluster, 'waits', 'open');
    await storeDelivery(cluster, 'came', 'delivered');
    await store('first', 'done', 31, 'turn');
    await store('young', 'done', 29, 'turn');
    await store('open', 'open', 31, 'turn');
    await store('of a run', 'done', 31, 'works');
    await store('of a delivery', 'superseded', 31, 'waits-callback');
    await store('of a delivery that came', 'superseded', 31, 'came-callback');
    await store('many', 'done', 31, 'turn', 12_000);
    await store('young behind many', 'superseded', 29, 'turn');
    await store('old behind many', 'superseded', 31, 'turn');

    expect(await sweepOf(cluster).swept).toMatchObject({ old_effects: 12_003 });

    expect(await idsIn(cluster, 'effects')).toEqual(['of a delivery', 'of a run', 'open', 'young', 'young behind many']);
  });
}
