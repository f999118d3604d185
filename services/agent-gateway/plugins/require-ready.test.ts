import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { bundleWith } from '../test-support/bundle.ts';
import { BEARER, newSession, openTestDeployment, post, type TestDeployment } from '../test-support/test-deployment.ts';
import { until } from '../test-support/until.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(() => deployment.closeApps());
afterAll(() => deployment.close());

describe('a bus that is nearly full', () => {
  it('DESIGN 4: a bus that is nearly full refuses every request that adds work with 503 and Retry-After, and no other', async () => {
    let hasCapacity = true;
    const app = deployment.app({ bundle: bundleWith({ id: 'triage' }), bus: { ...deployment.bus, hasCapacity: () => hasCapacity } });
    const sessionId = await newSession(app);
    const { run_id } = (
      await app.inject({ method: 'POST', url: '/routines/triage/trigger', headers: BEARER, payload: { callback_url: 'https://example.com/' } })
    ).json();
    const commands = deployment.owner.commands.filter((command) => command.sessionId === sessionId).length;
    hasCapacity = false;

    const refused = [
      ['POST', '/sessions'],
      ['POST', `/sessions/${sessionId}/events`],
      ['PATCH', `/sessions/${sessionId}`],
      ['DELETE', `/sessions/${sessionId}`],
      ['POST', '/routines/triage/trigger'],
      ['POST', '/routines/unknown/trigger'],
    ] as const;
    for (const [method, url] of refused) {
      const reply = await app.inject({ method, url, headers: BEARER });
      expect(reply.statusCode).toBe(503);
      expect(reply.headers['retry-after']).toBe('1');
      expect(reply.json()).toMatchObject({ code: 'not_ready' });
    }
    for (const url of [`/sessions/${sessionId}`, `/sessions/${sessionId}/events?wait_for_data=0`, `/runs/${run_id}`, '/runs', '/health/ready']) {
      expect((await app.inject({ url, headers: BEARER })).statusCode).toBe(200);
    }
    hasCapacity = true;
    expect((await app.inject({ method: 'DELETE', url: `/sessions/${sessionId}`, headers: BEARER })).statusCode).toBe(204);
    expect(deployment.owner.commands.filter((command) => command.sessionId === sessionId)).toHaveLength(commands + 1);
  });
});

describe('a long queue of model calls', () => {
  it('DESIGN 4: while too many model calls wait, what may start one is refused with 503, and what starts none is accepted', async () => {
    let admitsCalls = true;
    const bus = { ...deployment.bus, hasCapacity: (kind?: string) => kind === undefined || admitsCalls };
    const app = deployment.app({ bundle: bundleWith({ id: 'triage' }), bus });
    const sessionId = await newSession(app);
    const { id: eventId } = (await post(app, sessionId, { kind: 'user_message', text: 'Hello' })).json();
    const callback = { callback_url: 'https://example.com/' };
    const { run_id } = (await app.inject({ method: 'POST', url: '/routines/triage/trigger', headers: BEARER, payload: callback })).json();
    const customer = (await app.inject({ method: 'POST', url: '/customers', headers: BEARER, payload: { name: 'A' } })).json();
    const session = `/sessions/${sessionId}`;
    admitsCalls = false;

    for (const url of ['/sessions', `${session}/events`, `${session}/tool_events`, '/routines/triage/trigger', '/dead_letters/x/replay']) {
      expect((await app.inject({ method: 'POST', url, headers: BEARER })).statusCode).toBe(503);
    }
    const accepted = [
      ['POST', `/runs/${run_id}/cancel`, {}, 202],
      ['PATCH', session, { title: 'A' }, 200],
      ['PATCH', `${session}/events/${eventId}`, { metadata: { set: { a: 1 } } }, 200],
      ['PUT', `${session}/event_webhook`, { url: null }, 200],
      ['DELETE', `${session}/events?min_offset=0`, undefined, 204],
      ['DELETE', session, undefined, 204],
      ['DELETE', `/customers/${customer.id}?cascade=true`, undefined, 204],
    ] as const;
    for (const [method, url, payload, status] of accepted) {
      const reply = await app.inject({ method, url, headers: BEARER, ...(payload && { payload }) });
      expect([method, url, reply.statusCode]).toEqual([method, url, status]);
    }
  });
});

describe('a database that goes away', () => {
  it('is detected by the first statement that fails; all are refused at once until it is back', async () => {
    let isAway = false;
    const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const database: Database = {
      ...deployment.database,
      query: (statement, parameters) => (isAway ? Promise.reject(away) : deployment.database.query(statement, parameters)),
    };
    const app = deployment.app({ database, waits: { bootCheckMs: 10 } });
    const sessionId = await newSession(app);
    const commands = deployment.owner.commands.length;
    isAway = true;

    expect((await app.inject({ url: `/sessions/${sessionId}`, headers: BEARER })).statusCode).toBe(503);
    await until(async () => (await post(app, sessionId, { kind: 'user_message', text: 'Hello' })).statusCode === 503, 'refusals');
    expect((await app.inject({ url: '/health/ready' })).json()).toEqual({ status: 'unavailable' });
    const refusedFrom = deployment.owner.commands.length;
    expect((await post(app, sessionId, { kind: 'user_message', text: 'Hello' })).json()).toMatchObject({ code: 'not_ready' });
    expect(deployment.owner.commands.length).toBe(refusedFrom);
    expect(refusedFrom - commands).toBeLessThan(5);
    isAway = false;

    await until(async () => (await app.inject({ url: `/sessions/${sessionId}`, headers: BEARER })).statusCode === 200, 'answers');
  });
});
