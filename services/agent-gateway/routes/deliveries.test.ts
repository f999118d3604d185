import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { send } from '../test-support/api.ts';
import { bundleWith } from '../test-support/bundle.ts';
import { newSession, openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';

let deployment: TestDeployment;
const runIds: string[] = [];
const BUNDLE = bundleWith({ id: 'triage' });
const get = (url: string) => send(deployment.app({ bundle: BUNDLE }), 'GET', url);

beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
  const app = deployment.app({ bundle: BUNDLE });
  for (const _ of [1, 2, 3]) {
    const reply = await send(app, 'POST', '/routines/triage/trigger', { callback_url: 'https://receiver.example/hook?token=secret' });
    runIds.unshift((reply.json() as { run_id: string }).run_id);
  }
  const states = ['open', 'dead', 'delivered'];
  for (const [at, id] of runIds.entries()) {
    await database.query(
      `insert into deliveries (id, p, session_id, run_id, url, host_allowlist, bundle_hash, idempotency_key, trace_id, body, attempts, state, created_at)
       select $1 || '-callback', p, session_id, id, 'https://user:pass@receiver.example/hook?token=secret', 'null', 'h', 'k', 't', '{}', $2::int, $3, now() from runs where id = $1`,
      [id, at, states[at]],
    );
  }
});
afterAll(() => deployment.close());
afterEach(() => deployment.closeApps());

describe('callbacks', () => {
  it('are listed by their runs, newest first, page by page, without what may be a secret of their address', async () => {
    const first = (await get('/deliveries?limit=2')).json() as { items: Record<string, unknown>[]; next_cursor: string };
    const second = (await get(`/deliveries?limit=2&cursor=${first.next_cursor}`)).json() as typeof first;

    expect([...first.items, ...second.items].map(({ run_id }) => run_id)).toEqual(runIds);
    expect(first.items[0]).toMatchObject({ id: `${runIds[0]}-callback`, url: 'https://receiver.example/hook', state: 'open', attempts: 0, settled_at: null });
    expect(JSON.stringify(first)).not.toMatch(/token|pass@/);
    expect(second.next_cursor).toBeNull();
  });

  it('are filtered by their state, and read for one run', async () => {
    expect((await get('/deliveries?state=dead')).json()).toMatchObject({ items: [{ run_id: runIds[1], state: 'dead' }], has_more: false });
    expect((await get(`/runs/${runIds[2]}/deliveries`)).json()).toMatchObject({ items: [{ state: 'delivered', attempts: 2 }], next_cursor: null });
    expect((await get('/runs/run_unknown/deliveries')).statusCode).toBe(404);
    expect((await get('/deliveries?state=lost')).statusCode).toBe(400);
  });
});

it('what webhooks have taken is listed newest first, with the runs that are kept', async () => {
  const insert = 'insert into webhook_deliveries (key, webhook, matched, received_at) values ($1, $2, $3::text[], $4)';
  await deployment.database.query(insert, ['wh:orders:aa', 'orders', ['triage', 'gone'], new Date(2_000)]);
  await deployment.database.query(insert, ['wh:orders:bb', 'orders', [], new Date(1_000)]);
  await deployment.database.query('update runs set idempotency_key = $2 where id = $1', [runIds[0], 'wh:orders:aa']);
  const first = (await get('/webhook_deliveries?limit=1')).json() as { items: unknown[]; next_cursor: string };
  const second = (await get(`/webhook_deliveries?limit=1&cursor=${first.next_cursor}`)).json() as typeof first;

  const runs = [{ run_id: runIds[0], routine_id: 'triage', status: 'accepted' }];
  expect(first.items).toEqual([{ webhook: 'orders', body_hash: 'aa', received_at: '1970-01-01T00:00:02.000Z', matched: ['triage', 'gone'], runs }]);
  expect([second.items, second.next_cursor]).toMatchObject([[{ body_hash: 'bb', runs: [] }], null]);
});

it('the event webhook of a session says how far its events are posted; 404 without one', async () => {
  const sessionId = await newSession(deployment.app());
  expect((await get(`/sessions/${sessionId}/event_webhook`)).statusCode).toBe(404);
  expect((await get('/sessions/ses_unknown/event_webhook')).statusCode).toBe(404);
  const context = { url: 'https://receiver.example/?token=x', isOn: true, cursor: 7, attempts: 2, waitingSinceMs: 1_000, roundId: null };
  await deployment.database.query('update sessions set snapshot = $2::json where id = $1', [
    sessionId,
    JSON.stringify({ eventWebhook: { value: 'waiting', context } }),
  ]);

  const expected = { is_on: true, url: 'https://receiver.example/', from_offset: 7, attempts: 2, waiting_since: '1970-01-01T00:00:01.000Z' };
  expect((await get(`/sessions/${sessionId}/event_webhook`)).json()).toEqual(expected);
});
