import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { bundleWith } from '../test-support/bundle.ts';
import { BEARER, newSession, openTestDeployment, post, type TestDeployment } from '../test-support/test-deployment.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterAll(() => deployment.close());
afterEach(() => deployment.closeApps());

const BUNDLE = bundleWith({ id: 'triage' });

async function cancel(runId: string, app = deployment.app({ bundle: BUNDLE })) {
  const reply = await app.inject({ method: 'POST', url: `/runs/${runId}/cancel`, headers: BEARER });
  return { status: reply.statusCode, body: reply.json() as Record<string, unknown> };
}

async function accepted(app = deployment.app({ bundle: BUNDLE })): Promise<string> {
  const payload = { callback_url: 'https://example.com/' };
  const reply = await app.inject({ method: 'POST', url: '/routines/triage/trigger', headers: BEARER, payload });
  return (reply.json() as { run_id: string }).run_id;
}

describe('POST /runs/:run_id/cancel', () => {
  it.each(['run_unknown', 'run.dots', 'run%00'])('answers 404 to %s, and sends no command', async (id) => {
    const before = deployment.owner.commands.length;

    expect(await cancel(id)).toMatchObject({ status: 404, body: { code: 'not_found' } });
    expect(deployment.owner.commands).toHaveLength(before);
  });

  it('answers 202 with the run, and the same when it is repeated', async () => {
    const runId = await accepted();
    const first = await cancel(runId);

    expect(first).toMatchObject({ status: 202, body: { run_id: runId, status: 'failed' } });
    expect(await cancel(runId)).toEqual(first);
    const [command, ...others] = deployment.owner.commands.filter(({ commandId }) => commandId === `${runId}-cancel`);
    expect(command).toMatchObject({ v: 3, type: 'run.cancel', runId });
    expect(others).toEqual([]);
  });

  it('answers 409 for a run that has settled otherwise', async () => {
    const runId = await accepted();
    await deployment.database.query(`update runs set state = 'succeeded', output = '{}', completed_at = now() where id = $1`, [runId]);

    expect(await cancel(runId)).toEqual({ status: 409, body: { error: 'the run has settled already', code: 'conflict' } });
  });
});

describe('POST /sessions/{id}/events of a front end', () => {
  it.each([
    ['a custom event', { kind: 'custom', data: { page: 1 }, metadata: { tab: 2 } }, { kind: 'custom', data: { page: 1 }, metadata: { tab: 2 } }],
    ['a status', { kind: 'status', status: 'typing', data: 7 }, { kind: 'status', status: 'typing', stage: null, error_detail: null, data: 7 }],
  ])('answers 201 with %s, and 200 when its key repeats', async (_, body, event) => {
    const app = deployment.app({ bundle: BUNDLE });
    const sessionId = await newSession(app);
    const first = await post(app, sessionId, { ...body, idempotency_key: 'k' });
    const second = await post(app, sessionId, { ...body, idempotency_key: 'k' });

    expect({ status: first.statusCode, body: first.json() as object }).toMatchObject({ status: 201, body: { ...event, source: 'customer_ui' } });
    expect({ status: second.statusCode, body: second.json() as object }).toEqual({ status: 200, body: first.json() as object });
    expect(deployment.owner.commands.filter((one) => one.sessionId === sessionId).at(-1)).toMatchObject({ v: 3, type: 'client-event.post' });
  });

  it('is read alone by its id, with the bytes of the log; unknown ids are 404', async () => {
    const app = deployment.app({ bundle: BUNDLE });
    const sessionId = await newSession(app);
    const { id } = (await post(app, sessionId, { kind: 'custom', data: 1 })).json() as { id: string };
    const get = (url: string) => app.inject({ url, headers: BEARER });
    const [log, one] = await Promise.all([get(`/sessions/${sessionId}/events?wait_for_data=0`), get(`/sessions/${sessionId}/events/${id}`)]);

    expect({ status: one.statusCode, body: `[${one.body}]` }).toEqual({ status: 200, body: log.body });
    for (const url of [`/sessions/${sessionId}/events/evt_unknown`, `/sessions/${sessionId}/events/a.b`, `/sessions/ses_unknown/events/${id}`]) {
      expect((await get(url)).statusCode).toBe(404);
    }
  });

  it('sends the participant of a message in a command that older hosts leave to newer ones', async () => {
    const app = deployment.app({ bundle: BUNDLE });
    const sessionId = await newSession(app);
    const reply = await post(app, sessionId, { kind: 'user_message', text: 'Hello', participant: { display_name: 'Ada' } });
    await post(app, sessionId, { kind: 'user_message', text: 'Hello' });

    expect(reply.json()).toMatchObject({ participant: { id: null, display_name: 'Ada' } });
    expect(deployment.owner.commands.filter((one) => one.sessionId === sessionId && one.type === 'message.post').map(({ v }) => v)).toEqual([3, 1]);
  });
});
