import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { bundleOf } from '../test-support/bundle.ts';
import { deliver, WEBHOOK_SECRET } from '../test-support/signed.ts';
import { openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';
import { until } from '../test-support/until.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterAll(() => deployment.close());
afterEach(async () => {
  await deployment.closeApps();
  await deployment.database.query('delete from runs');
  await deployment.database.query('delete from webhook_deliveries');
});

const HOOK = { secret_env: '$' + '{HOOK_SECRET}', header: 'X-Hub-Signature-256', prefix: 'sha256=' };
const BUNDLE = bundleOf(
  {
    webhooks: [
      { ...HOOK, name: 'repository', routines: ['opened', 'main', 'off', 'every'] },
      { ...HOOK, name: 'other', routines: ['every'] },
      { ...HOOK, name: 'none', routines: ['never', 'off'] },
    ],
  },
  { id: 'every' },
  { id: 'opened', autonomous: { match: { action: ['opened', 'reopened'] } } },
  { id: 'main', autonomous: { match: { 'pull_request.base.ref': 'main' } } },
  { id: 'never', autonomous: { match: { action: [] } } },
  { id: 'off', enabled: false },
);
const OPENED = { action: 'opened', pull_request: { base: { ref: 'next' } } };

function app(changes: Parameters<TestDeployment['app']>[0] = {}) {
  return deployment.app({ bundle: BUNDLE, secretNow: () => WEBHOOK_SECRET, ...changes });
}

async function rowsOf(table: 'runs' | 'webhook_deliveries'): Promise<Record<string, unknown>[]> {
  return (await deployment.database.query<Record<string, unknown>>(`select * from ${table}`)).rows;
}

describe('a delivery to a webhook of the manifest', () => {
  it('starts a run of each routine that it is for, in the order of the manifest', async () => {
    const reply = await deliver(app(), 'repository', OPENED);

    const runs = [
      { routine_id: 'opened', run_id: expect.stringMatching(/^run_/), status: 'accepted' },
      { routine_id: 'every', run_id: expect.stringMatching(/^run_/), status: 'accepted' },
    ];
    expect(reply.statusCode).toBe(200);
    expect(reply.json()).toEqual({ webhook: 'repository', matched: ['opened', 'every'], runs });
    const [delivery] = await rowsOf('webhook_deliveries');
    expect(delivery).toMatchObject({ key: expect.stringMatching(/^wh:repository:[0-9a-f]{64}$/), webhook: 'repository', matched: ['opened', 'every'] });
    const ids = (reply.json().runs as { run_id: string }[]).map(({ run_id }) => run_id);
    const stored = await rowsOf('runs');
    expect(stored.map(({ id }) => id).sort()).toEqual([...ids].sort());
    for (const run of stored) {
      expect(run).toMatchObject({ idempotency_key: delivery?.key, input: OPENED, metadata: { webhook: 'repository' }, callback_url: null, ephemeral: true });
      expect(run.session_id).toBe(String(run.id).replace('run_', 'ses_'));
    }
    const started = () => deployment.owner.commands.flatMap((command) => (command.type === 'run.start' ? [command.runId] : []));
    await until(() => ids.every((id) => started().includes(id)), 'the commands');
  });

  it('has no runs when it is for no routine, and is not looked at again', async () => {
    const on = app();
    for (let n = 0; n < 2; n += 1) {
      const reply = await deliver(on, 'none', OPENED);

      expect(reply.statusCode).toBe(200);
      expect(reply.json()).toEqual({ webhook: 'none', matched: [], runs: [] });
    }
    expect(await rowsOf('webhook_deliveries')).toMatchObject([{ webhook: 'none', matched: [] }]);
    expect(await rowsOf('runs')).toEqual([]);
  });

  it('gets the first runs when the same bytes come again, as they are by now, also for routines that it would not be for any more', async () => {
    const first = (await deliver(app(), 'repository', OPENED)).json();
    await deployment.database.query(`update runs set state = 'succeeded', output = '{}' where routine_id = 'opened'`);
    const changed = app({ bundle: bundleOf({ webhooks: [{ ...HOOK, name: 'repository', routines: ['every'] }] }, { id: 'every' }) });

    const again = await deliver(changed, 'repository', OPENED);
    expect(again.statusCode).toBe(200);
    expect(again.json()).toEqual({ ...first, runs: [{ ...first.runs[0], status: 'succeeded' }, first.runs[1]] });
    expect((await deliver(changed, 'other', OPENED)).statusCode).toBe(404);
    expect(await rowsOf('runs')).toHaveLength(2);
  });

  it('is another one to another webhook, and as other bytes', async () => {
    const on = app();
    for (const [name, body] of [
      ['repository', OPENED],
      ['other', OPENED],
      ['other', `${JSON.stringify(OPENED)} `],
    ] as const)
      await deliver(on, name, body);

    expect((await rowsOf('runs')).filter(({ routine_id }) => routine_id === 'every')).toHaveLength(3);
  });

  it('DESIGN 5: one delivery starts one run of each routine, however many repeats of it arrive at once', async () => {
    const gateways = [app(), app()];

    const replies = await Promise.all(Array.from({ length: 20 }, (_, n) => deliver(gateways[n % 2] ?? app(), 'repository', OPENED)));

    expect(replies.map(({ statusCode }) => statusCode)).toEqual(Array(20).fill(200));
    expect(new Set(replies.map(({ body }) => body)).size).toBe(1);
    expect((await rowsOf('runs')).map(({ routine_id }) => routine_id).sort()).toEqual(['every', 'opened']);
  });

  it('DESIGN 5: a delivery is stored with all its runs or not at all', async () => {
    const database: Database = {
      ...deployment.database,
      // The second run of the statement violates the primary key.
      query: (statement, parameters = []) => {
        if (typeof statement === 'string' || statement.name !== 'agent-gateway-accept-delivery') return deployment.database.query(statement, parameters);
        const ids = parameters[3] as string[];
        return deployment.database.query(statement, parameters.with(3, [ids[0], ids[0]]));
      },
    };

    expect((await deliver(app({ database }), 'repository', OPENED)).statusCode).toBe(500);
    expect(await rowsOf('webhook_deliveries')).toEqual([]);
    expect(await rowsOf('runs')).toEqual([]);
    expect((await deliver(app(), 'repository', OPENED)).json().runs).toHaveLength(2);
  });

  it('has the run that is still kept of a delivery that is not', async () => {
    const first = (await deliver(app(), 'repository', OPENED)).json();
    await deployment.database.query('delete from webhook_deliveries');
    await deployment.database.query(`delete from runs where routine_id = 'every'`);

    const again = (await deliver(app(), 'repository', OPENED)).json();
    expect(again).toMatchObject({ matched: ['opened', 'every'], runs: [first.runs[0], { routine_id: 'every' }] });
    expect(again.runs[1].run_id).not.toBe(first.runs[1].run_id);
  });
});
