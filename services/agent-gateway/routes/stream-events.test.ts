import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { buildApp } from '../app.ts';
import { assemble } from '../components.ts';
import { limits } from '../limits.ts';
import { countedBus } from '../test-support/counted-bus.ts';
import type { EventClient } from '../test-support/event-source.ts';
import { gatewaysOf } from '../test-support/gateways.ts';
import { BEARER, newSession as newSessionOf, openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';

let deployment: TestDeployment;
const { start, newSession, stream, stopAll } = gatewaysOf(() => deployment);
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(() => {
  deployment.owner.silent.notices = false;
  return stopAll();
});
afterAll(() => deployment.close());

const SAY = (text: string) => ({ kind: 'assistant_message', text }) as const;
const STATUS = (status: 'acknowledged' | 'cancelled' | 'ready') => ({ kind: 'status', status, stage: null, error_detail: null }) as const;
const idsOf = (client: EventClient) => client.events.filter(({ id }) => id !== undefined).map(({ id }) => Number(id));

describe('an event stream', () => {
  it('is refused with its proper status before it begins', async () => {
    const gateway = await start();
    const sessionId = await newSession(gateway);

    expect((await stream(gateway, 'ses_unknown')).status).toBe(404);
    expect((await stream(gateway, sessionId, 'min_offset=x')).status).toBe(400);
    expect((await stream(gateway, sessionId, '', { 'last-event-id': 'x' })).status).toBe(400);
    expect((await stream(gateway, sessionId, '', { authorization: 'Bearer x' })).status).toBe(401);
  });

  it('leaves nothing open when it can not begin', async () => {
    const closed = () => {
      throw new SwitchyardError('bus.closed', 'the bus is closed');
    };
    const { bus, listening } = countedBus({ ...deployment.bus, tokens: { ...deployment.bus.tokens, subscribe: closed } });
    const deps = deployment.deps({ streaming: true, bus });
    const parts = assemble(deps);
    const app = buildApp(deps, parts);
    const sessionId = await newSessionOf(app);

    const reply = await app.inject({ url: `/sessions/${sessionId}/events`, headers: { ...BEARER, accept: 'text/event-stream' } });

    expect(reply.statusCode).toBe(503);
    expect(parts.streams.size).toBe(0);
    expect(listening(`evt.${sessionId}`)).toBe(0);
    await app.close();
  });

  it.each([
    'application/json, text/event-stream;q=0',
    'application/json, text/event-stream;q=0.1',
    'text/event-stream; q=0.5, application/json; q=0.9',
    'text/event-stream;q=high',
    '*/*',
  ])('is an ordinary poll for a client that refuses streams, or likes JSON better (%s)', async (accept) => {
    const app = deployment.app();
    const sessionId = await newSessionOf(app);
    const headers = { ...BEARER, accept };

    const reply = await app.inject({ url: `/sessions/${sessionId}/events?wait_for_data=0`, headers });

    expect(reply.json()).toEqual([]);
    await deployment.closeApps();
  });

  it.each(['application/json, text/event-stream', 'application/json;q=0.1, text/event-stream;q=0.2'])(
    'is one for a client that likes it as well (%s)',
    async (accept) => {
      const gateway = await start();

      const client = await stream(gateway, await newSession(gateway), '', { accept });

      expect(client.headers.get('content-type')).toBe('text/event-stream');
    },
  );

  it('begins at once, before there is any event', async () => {
    const gateway = await start();

    const client = await stream(gateway, await newSession(gateway));

    expect(client.status).toBe(200);
    expect(client.headers.get('content-type')).toBe('text/event-stream');
    expect(client.headers.get('x-accel-buffering')).toBe('no');
    expect(client.headers.get('cache-control')).toContain('no-cache');
    expect(client.headers.get('x-polling-backoff')).toBe('0');
    expect(client.headers.get('x-request-id')).toMatch(/^req_/);
    await client.waitFor('the comment', () => client.comments.length > 0);
  });

  it('sends stored and new events, each once, under its offset and kind', async () => {
    const gateway = await start();
    const sessionId = await newSession(gateway);
    const [first] = await deployment.owner.append(sessionId, SAY('one'));
    const client = await stream(gateway, sessionId);
    await client.waitFor('the first event', () => client.events.length === 1);

    const [second, third] = await deployment.owner.append(sessionId, SAY('two\nlines'), STATUS('ready'));
    await client.waitFor('all events', () => client.events.length === 3);

    expect(client.events).toEqual([
      { id: '0', event: 'assistant_message', data: JSON.stringify(first) },
      { id: '1', event: 'assistant_message', data: JSON.stringify(second) },
      { id: '2', event: 'status', data: JSON.stringify(third) },
    ]);
  });

  it('resumes behind the last event that the client has, whatever the query says', async () => {
    const gateway = await start();
    const sessionId = await newSession(gateway);
    await deployment.owner.append(sessionId, SAY('0'), SAY('1'), SAY('2'));

    const client = await stream(gateway, sessionId, 'min_offset=0', { 'last-event-id': '1' });
    await client.waitFor('an event', () => client.events.length > 0);
    await deployment.owner.append(sessionId, SAY('3'));
    await client.waitFor('the next', () => client.events.length > 1);

    expect(idsOf(client)).toEqual([2, 3]);
  });

  it('sends only what matches its filter', async () => {
    const gateway = await start();
    const sessionId = await newSession(gateway);
    await deployment.owner.append(sessionId, STATUS('ready'), SAY('1'));
    const client = await stream(gateway, sessionId, 'kinds=assistant_message');
    await client.waitFor('what is there', () => client.events.length === 1);

    await deployment.owner.append(sessionId, STATUS('ready'), SAY('3'));
    await client.waitFor('what comes', () => client.events.length === 2);

    expect(idsOf(client)).toEqual([1, 3]);
  });

  it('sends a long log in order and continues with new events', async () => {
    const gateway = await start();
    const sessionId = await newSession(gateway);
    const count = limits.streamPageEvents * 2 + 10;
    await deployment.owner.append(sessionId, ...Array.from({ length: count }, (_, n) => SAY(`${n} ${'x'.repeat(2_000)}`)));

    const client = await stream(gateway, sessionId);
    const appending = deployment.owner.append(sessionId, SAY('late'));
    await client.waitFor('all events', () => client.events.length === count + 1);
    await appending;

    expect(idsOf(client)).toEqual(Array.from({ length: count + 1 }, (_, n) => n));
  });

  it('misses nothing when a notice was lost and another host acquires the partition', async () => {
    const gateway = await start();
    const sessionId = await newSession(gateway);
    const client = await stream(gateway, sessionId);
    deployment.owner.silent.notices = true;
    await deployment.owner.append(sessionId, SAY('lost'));

    deployment.owner.announceOwnerChange(sessionId);

    await client.waitFor('the event', () => client.events.length === 1);
  });

  it('stays alive with comments', async () => {
    const gateway = await start({ waits: { heartbeatMs: 10 } });

    const client = await stream(gateway, await newSession(gateway));

    await client.waitFor('heartbeats', () => client.comments.filter((comment) => comment === 'heartbeat').length >= 2);
  });

  it.each([
    ['receives the notice', false],
    ['does not', true],
  ])('ends when the session is deleted and the gateway %s', async (_case, isLost) => {
    const gateway = await start({ streaming: true, waits: { checkFeedsMs: 20 } });
    const sessionId = await newSession(gateway);
    const client = await stream(gateway, sessionId);
    await client.waitFor('the comment', () => client.comments.length > 0);
    deployment.owner.silent.notices = isLost;

    await fetch(`${gateway.url}/sessions/${sessionId}`, { method: 'DELETE', headers: BEARER });

    await client.waitFor('the end', () => client.isEnded);
    expect(client.comments.at(-1)).toContain('the session was deleted');
    expect((await stream(gateway, sessionId)).status).toBe(404);
  });

  it('does not repeatedly read a log that is shorter than its notices, and goes on with new events', async () => {
    const gateway = await start();
    const sessionId = await newSession(gateway);
    await fetch(`${gateway.url}/sessions/${sessionId}/events?wait_for_data=0.001`, { headers: BEARER });
    const received = new Promise((resolve) => deployment.bus.notices.subscribe(subjectOf(addresses.notices, sessionId), resolve));
    deployment.bus.notices.publish(subjectOf(addresses.notices, sessionId), JSON.stringify({ v: 1, first: 7, last: 7, events: null }));
    await received;
    deployment.queries.length = 0;
    const client = await stream(gateway, sessionId);
    await client.waitFor('the comment', () => client.comments.length > 0);

    await deployment.owner.append(sessionId, SAY('a'));
    await client.waitFor('the event', () => client.events.length === 1);

    expect(deployment.queries.length).toBeLessThan(4);
  });
});
