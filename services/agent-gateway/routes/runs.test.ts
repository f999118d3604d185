import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { limits } from '../limits.ts';
import { bundleWith } from '../test-support/bundle.ts';
import { BEARER, openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterAll(() => deployment.close());
beforeEach(() => deployment.database.query('delete from runs'));
afterEach(() => deployment.closeApps());

const BUNDLE = bundleWith({ id: 'triage' }, { id: 'anything' });

async function get(url: string) {
  const reply = await deployment.app({ bundle: BUNDLE }).inject({ url, headers: BEARER });
  return { status: reply.statusCode, body: reply.json() };
}

async function trigger(routineId = 'triage', metadata?: Record<string, unknown>) {
  const payload = { callback_url: 'https://example.com/', metadata };
  return (await deployment.app({ bundle: BUNDLE }).inject({ method: 'POST', url: `/routines/${routineId}/trigger`, headers: BEARER, payload })).json();
}

/** Rows as an owner stores them: newest last, all within one millisecond. */
async function store(count: number, { state = 'succeeded', output = '{}' } = {}): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, n) => `run_${String(n).padStart(3, '0')}`);
  await deployment.database.query(
    `insert into runs (id, p, session_id, customer_id, ephemeral, routine_id, idempotency_key, bundle_hash, state, input, trace_id, timeout_ms, expires_at,
       output, created_at)
     select id, 0, 'ses_1', 'cus_1', true, 'triage', id, 'b', $2, '{}', 't', 1, now(), $3::json,
       timestamptz '2026-01-31 12:00:00Z' + (n / 3) * interval '1 microsecond'
     from unnest($1::text[]) with ordinality i (id, n)`,
    [ids, state, output],
  );
  return ids;
}

describe('GET /runs/:run_id', () => {
  it.each(['run_unknown', 'run.dots', 'run%00', 'x'.repeat(129)])('answers 404 to %s', async (id) => {
    const { status, body } = await get(`/runs/${id}`);

    expect(status).toBe(404);
    expect(body).toMatchObject({ code: 'not_found' });
  });

  it('shows a run that has not begun', async () => {
    const run = await trigger('triage', { ticket: 7 });

    expect(await get(`/runs/${run.run_id}`)).toEqual({
      status: 200,
      body: {
        ...run,
        output: null,
        error: null,
        started_at: null,
        completed_at: null,
        trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
        metadata: { ticket: 7 },
      },
    });
  });

  it('shows a settled run', async () => {
    const { run_id } = await trigger();
    await deployment.database.query(`update runs set state = 'failed', error = $1, started_at = $2, completed_at = $3`, [
      JSON.stringify({ code: 'timeout', message: 'too late', details: { timeout_seconds: 7 } }),
      new Date('2026-01-31T12:00:00.001Z'),
      new Date('2026-01-31T12:00:07.002Z'),
    ]);

    expect((await get(`/runs/${run_id}`)).body).toMatchObject({
      status: 'failed',
      output: null,
      error: { code: 'timeout', message: 'too late', details: { timeout_seconds: 7 } },
      started_at: '2026-01-31T12:00:00.001Z',
      completed_at: '2026-01-31T12:00:07.002Z',
      metadata: null,
    });
  });
});

describe('GET /runs/:run_id/steps', () => {
  const outcome = (type: string, more: object = {}) => ({ type, reason: null, model: null, provider: null, usage: null, ...more });

  /** A run's effects as its owner stores them, a second apart; those with an outcome ended 250 ms later. */
  async function storeSteps(runId: string, steps: { kind: string; state: string; inputs?: object; outcome?: object }[]): Promise<void> {
    for (const [index, { kind, state, inputs = {}, outcome: stored }] of steps.entries()) {
      const id = `${runId}-${index + 1}`;
      const at = Date.UTC(2026, 0, 31, 12, 0, index);
      await deployment.database.query(
        `insert into effects (id, p, session_id, turn_id, kind, state, inputs, created_at) values ($1, 0, 'ses_1', $2, $3, $4, $5::json, $6)`,
        [id, runId, kind, state, JSON.stringify(inputs), new Date(at)],
      );
      if (stored === undefined) continue;
      await deployment.database.query('insert into run_calls (run_id, effect_id, outcome, ended_at) values ($1, $2, $3::json, $4)', [
        runId,
        id,
        JSON.stringify(stored),
        new Date(at + 250),
      ]);
    }
  }

  afterEach(async () => {
    await deployment.database.query('delete from effects');
    await deployment.database.query('delete from run_calls');
  });

  it.each(['run_unknown', 'run.dots', 'x'.repeat(129)])('answers 404 to %s', async (id) => {
    expect(await get(`/runs/${id}/steps`)).toMatchObject({ status: 404, body: { code: 'not_found' } });
  });

  it('answers 401 without the key', async () => {
    expect((await deployment.app().inject({ url: '/runs/run_unknown/steps' })).statusCode).toBe(401);
  });

  it.each([
    ['limit=0', '/limit'],
    ['limit=201', '/limit'],
    ['cursor=-1', '/cursor'],
    ['cursor=x', '/cursor'],
  ])('answers 400 to %s and names it', async (query, path) => {
    const { run_id } = await trigger();

    const error = expect.stringMatching(new RegExp(`^${path.slice(1)} must be `));
    expect(await get(`/runs/${run_id}/steps?${query}`)).toMatchObject({ status: 400, body: { code: 'validation_failed', path, error } });
  });

  it('is empty before the first step', async () => {
    const { run_id } = await trigger();

    expect(await get(`/runs/${run_id}/steps`)).toEqual({ status: 200, body: { items: [], has_more: false, next_cursor: null } });
  });

  it('shows each call, how it ended and how long it took, and open ones', async () => {
    const { run_id } = await trigger();
    const usage = { prompt_tokens: 12, completion_tokens: 3 };
    await storeSteps(run_id, [
      { kind: 'tool-list', state: 'done', inputs: { servers: ['shop'] }, outcome: outcome('listed') },
      { kind: 'run-call', state: 'done', outcome: outcome('tools', { model: 'scripted/assistant', provider: 'Scripted', usage }) },
      { kind: 'tool-call', state: 'done', inputs: { toolId: 'shop:find', toolCallId: 'c1' }, outcome: outcome('result') },
      { kind: 'run-call', state: 'done' },
      { kind: 'run-call', state: 'open' },
    ]);
    const step = (number: number, kind: string, more: object) => ({
      ...{ step: number, kind, tool_id: null, reason: null, model: null, provider: null, usage: null },
      ...{ started_at: `2026-01-31T12:00:0${number - 1}.000Z`, ended_at: `2026-01-31T12:00:0${number - 1}.250Z`, ms: 250 },
      ...more,
    });

    expect((await get(`/runs/${run_id}/steps`)).body.items).toEqual([
      step(1, 'tool_list', { outcome: 'listed' }),
      step(2, 'model_call', { outcome: 'tools', model: 'scripted/assistant', provider: 'Scripted', usage }),
      step(3, 'tool_call', { outcome: 'result', tool_id: 'shop:find' }),
      step(4, 'model_call', { outcome: 'unknown', ended_at: null, ms: null }),
      step(5, 'model_call', { outcome: null, ended_at: null, ms: null }),
    ]);
  });

  it('returns all in pages, in order, none twice, and none of another run', async () => {
    const [{ run_id }, other] = [await trigger(), await trigger()];
    await storeSteps(
      run_id,
      Array.from({ length: 12 }, () => ({ kind: 'run-call', state: 'done', outcome: outcome('text') })),
    );
    await storeSteps(other.run_id, [{ kind: 'run-call', state: 'open' }]);
    const seen: number[] = [];
    let query = 'limit=5';
    for (let page = 0; page < 3; page += 1) {
      const { body } = await get(`/runs/${run_id}/steps?${query}`);
      seen.push(...body.items.map(({ step }: { step: number }) => step));
      expect(body.has_more).toBe(page < 2);
      query = `limit=5&cursor=${body.next_cursor}`;
    }

    expect(seen).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
  });

  it('skips rows of a kind that this release does not know', async () => {
    const { run_id } = await trigger();
    const kinds = ['run-call', 'later-kind', 'run-call', 'later-kind', 'later-kind', 'run-call'];
    await storeSteps(
      run_id,
      kinds.map((kind) => ({ kind, state: 'done', outcome: outcome('text') })),
    );
    const pages: number[][] = [];
    for (let query: string | null = 'limit=2'; query !== null && pages.length < 9; ) {
      const { body } = await get(`/runs/${run_id}/steps?${query}`);
      pages.push(body.items.map(({ step }: { step: number }) => step));
      expect(body.has_more).toBe(body.next_cursor !== null);
      query = body.next_cursor === null ? null : `limit=2&cursor=${body.next_cursor}`;
    }

    expect(pages).toEqual([[1], [3], [6]]);
  });
});

describe('GET /runs', () => {
  it.each([
    ['status=queued', '/status'],
    ['status=failed&status=running', '/status'],
    ['routine_id=%00', '/routine_id'],
    ['limit=0', '/limit'],
    ['limit=1e3', '/limit'],
    ['cursor=', '/cursor'],
    ['cursor=bm90aGluZw', '/cursor'],
    ['cursor=%00', '/cursor'],
  ])('answers 400 to %s and names it', async (query, path) => {
    const { status, body } = await get(`/runs?${query}`);

    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'validation_failed', path });
  });

  it('is empty when there is none', async () => {
    expect(await get('/runs')).toEqual({ status: 200, body: { items: [], has_more: false, next_cursor: null } });
  });

  it('filters by routine and by status', async () => {
    const [one, other] = [await trigger('triage'), await trigger('anything')];
    await deployment.database.query(`update runs set state = 'running' where id = $1`, [one.run_id]);
    const idsOf = async (query: string) => (await get(`/runs?${query}`)).body.items.map((run: { run_id: string }) => run.run_id);

    expect(await idsOf('routine_id=anything')).toEqual([other.run_id]);
    expect(await idsOf('status=running')).toEqual([one.run_id]);
    expect(await idsOf('status=running&routine_id=anything')).toEqual([]);
  });

  it('returns all in pages, the newest first, none twice and none left out, also of those that began at the same time', async () => {
    const ids = await store(25);
    const seen: string[] = [];
    let query = 'limit=4';
    for (let page = 0; page < 7; page += 1) {
      const { body } = await get(`/runs?${query}`);
      seen.push(...body.items.map((run: { run_id: string }) => run.run_id));
      expect(body.has_more).toBe(page < 6);
      query = `limit=4&cursor=${body.next_cursor}`;
    }

    expect([...seen].sort()).toEqual(ids);
    expect(seen[0]).toBe('run_023');
    expect(seen.at(-1)).toBe('run_001');
  });

  it('ends a page that gets too large, and goes on from there', async () => {
    await store(3, { output: JSON.stringify({ text: 'x'.repeat(limits.pageBytes / 2) }) });

    const first = (await get('/runs')).body;
    const second = (await get(`/runs?cursor=${first.next_cursor}`)).body;

    expect([first.items.length, first.has_more, second.items.length, second.has_more]).toEqual([2, true, 1, false]);
  });
});
