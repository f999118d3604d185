import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { limits } from '../limits.ts';
import { countedBus } from '../test-support/counted-bus.ts';
import { newSession, offsetsOf, openTestDeployment, post, read, type TestDeployment } from '../test-support/test-deployment.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterAll(() => deployment.close());
afterEach(() => {
  deployment.owner.silent.notices = false;
  deployment.owner.withoutBodies = false;
  return deployment.closeApps();
});

const SAY = (text: string) => ({ kind: 'assistant_message', text }) as const;
const STATUS = (status: 'typing' | 'ready') => ({ kind: 'status', status, stage: null, error_detail: null }) as const;

describe('refusals', () => {
  it.each([
    ['min_offset=-1', '/min_offset'],
    ['min_offset=1.5', '/min_offset'],
    ['min_offset=', '/min_offset'],
    ['min_offset=0x10', '/min_offset'],
    ['min_offset=1&min_offset=2', '/min_offset'],
    ['kinds=shout', '/kinds/0'],
    ['kinds=', '/kinds/0'],
    ['source=robot', '/source'],
    ['trace_id=', '/trace_id'],
    ['trace_id=%00', '/trace_id'],
    ['wait_for_data=61', '/wait_for_data'],
    ['wait_for_data=soon', '/wait_for_data'],
    ['limit=0', '/limit'],
    ['limit=1001', '/limit'],
  ])('answers 400 to %s and names it', async (query, path) => {
    const app = deployment.app();

    const reply = await read(app, await newSession(app), query);

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ code: 'validation_failed', path });
    expect(reply.headers['x-polling-backoff']).toBe('1');
  });

  it.each(['wait_for_data=0', 'wait_for_data=60', '', 'limit=0'])('answers 404 at once for an unknown session, with %s', async (query) => {
    const { bus, listening } = countedBus(deployment.bus);

    const reply = await read(deployment.app({ bus }), 'ses_unknown', query);

    expect(reply.statusCode).toBe(404);
    expect(reply.json()).toEqual({ error: 'there is no such session', code: 'not_found' });
    expect(reply.headers['x-polling-backoff']).toBe('1');
    expect(listening('evt.ses_unknown')).toBe(0);
  });
});

describe('stored events', () => {
  it('are returned at once, in order, as they were stored', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    const posted = await post(app, sessionId, { kind: 'user_message', text: 'Hi \u0000 \ud800' });
    const appended = await deployment.owner.append(sessionId, STATUS('typing'), SAY('Hello'), STATUS('ready'));

    const reply = await read(app, sessionId);

    expect(reply.statusCode).toBe(200);
    expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(reply.headers['x-polling-backoff']).toBe('0');
    expect(reply.json()).toEqual([posted.json(), ...appended]);
  });

  it.each([
    ['min_offset=2', [2, 3]],
    ['limit=2', [0, 1]],
    ['min_offset=1&limit=1', [1]],
    ['kinds=assistant_message', [2]],
    ['kinds=user_message,status', [0, 1, 3]],
    ['source=customer', [0]],
    ['kinds=status&min_offset=2', [3]],
    ['min_offset=3&unknown=1', [3]],
  ])('is chosen by %s', async (query, expected) => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    await post(app, sessionId, { kind: 'user_message', text: 'Hi' });
    await deployment.owner.append(sessionId, STATUS('typing'), SAY('Hello'), STATUS('ready'));

    expect(offsetsOf(await read(app, sessionId, query))).toEqual(expected);
  });

  it('are filtered by trace', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    await deployment.owner.append(sessionId, { ...SAY('a'), trace_id: 'a'.repeat(32) });
    await deployment.owner.append(sessionId, { ...SAY('b'), trace_id: 'b'.repeat(32) });

    expect(offsetsOf(await read(app, sessionId, `trace_id=${'b'.repeat(32)}`))).toEqual([1]);
  });

  it('are cut where the page gets too large, and go on from there', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    const large = SAY('x'.repeat(limits.pageBytes / 2));
    await deployment.owner.append(sessionId, large, large, large, large);

    const offsets: number[] = [];
    for (let next = 0; next < 4; next = (offsets.at(-1) ?? 0) + 1) offsets.push(...offsetsOf(await read(app, sessionId, `min_offset=${next}&wait_for_data=0`)));

    expect(offsets).toEqual([0, 1, 2, 3]);
    expect(offsetsOf(await read(app, sessionId, 'wait_for_data=0'))).toEqual([0, 1]);
  });

  it('include what the caller has just posted, at every gateway and without any notice', async () => {
    const [one, other] = [deployment.app(), deployment.app()];
    const sessionId = await newSession(one);
    await read(other, sessionId, 'wait_for_data=0.001');
    deployment.owner.silent.notices = true;

    await post(one, sessionId, { kind: 'user_message', text: 'Hi' });

    for (const app of [one, other]) expect(offsetsOf(await read(app, sessionId, 'wait_for_data=0'))).toEqual([0]);
  });
});

describe('a poll that waits', () => {
  it('is answered with an empty list when no event came and it named no time', async () => {
    const app = deployment.app({ waits: { pollMs: 20 } });

    const reply = await read(app, await newSession(app));

    expect(reply.statusCode).toBe(200);
    expect(reply.json()).toEqual([]);
    expect(reply.headers['x-polling-backoff']).toBe('1');
  });

  it('is answered with 504 when no event came in the time it named', async () => {
    const app = deployment.app();

    const reply = await read(app, await newSession(app), 'wait_for_data=0.02');

    expect(reply.statusCode).toBe(504);
    expect(reply.json()).toEqual({ error: expect.stringContaining('wait_for_data'), code: 'timeout' });
    expect(reply.headers['x-polling-backoff']).toBe('1');
  });

  it('that ends in 504 is not logged as an error; a request that could not be served is', async () => {
    const lines: string[] = [];
    const note = (_: Record<string, unknown>, message: string) => void lines.push(message);
    const log = { ...silentLog, info: note, warn: note, error: note };
    const app = deployment.app({ log });
    const sessionId = await newSession(app);

    lines.length = 0;

    expect((await read(app, sessionId, 'wait_for_data=0.02')).statusCode).toBe(504);
    expect(lines).toEqual([]);
    const unable = deployment.app({
      log,
      database: { ...deployment.database, query: () => Promise.reject(new SwitchyardError('service.unreachable', 'away')) },
    });
    expect((await read(unable, sessionId, 'wait_for_data=0.02')).statusCode).toBe(503);
    expect(lines).toContain('a request could not be served');
  });

  it('is answered as soon as an event comes', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    const { begun: waiting } = await deployment.afterPages(1, () => read(app, sessionId, 'wait_for_data=60'));

    const appended = await deployment.owner.append(sessionId, SAY('Hello'), STATUS('ready'));
    const reply = await waiting;

    expect(reply.statusCode).toBe(200);
    expect(reply.json()).toEqual(appended);
    expect(reply.headers['x-polling-backoff']).toBe('0');
  });

  it('gets no more than its limit, and the rest with the next poll', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    const { begun: waiting } = await deployment.afterPages(1, () => read(app, sessionId, 'wait_for_data=60&limit=1'));
    await deployment.owner.append(sessionId, SAY('a'), SAY('b'));

    expect(offsetsOf(await waiting)).toEqual([0]);
    expect(offsetsOf(await read(app, sessionId, 'wait_for_data=60&min_offset=1'))).toEqual([1]);
  });

  it('waits for an event that matches its filter', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    await deployment.owner.append(sessionId, STATUS('typing'));
    const { begun: waiting } = await deployment.afterPages(1, () => read(app, sessionId, 'wait_for_data=60&kinds=assistant_message'));

    await deployment.owner.append(sessionId, STATUS('typing'));
    await deployment.owner.append(sessionId, STATUS('ready'), SAY('Hello'));

    expect(offsetsOf(await waiting)).toEqual([3]);
  });

  it('waits for the offset that it named, however far ahead', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    const { begun: waiting } = await deployment.afterPages(1, () => read(app, sessionId, 'wait_for_data=60&min_offset=2'));

    await deployment.owner.append(sessionId, SAY('a'));
    await deployment.owner.append(sessionId, SAY('b'), SAY('c'), SAY('d'));

    expect(offsetsOf(await waiting)).toEqual([2, 3]);
  });

  it('misses nothing that is appended while it reads the log', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    for (let offset = 0; offset < 20; offset += 1) {
      const [reply] = await Promise.all([read(app, sessionId, `wait_for_data=60&min_offset=${offset}`), deployment.owner.append(sessionId, SAY(`${offset}`))]);
      expect(offsetsOf(reply)).toEqual([offset]);
    }
  });

  it('DESIGN 3: an event is in the database whatever its size: one too large for a notice is fetched, once for all waiting polls', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    deployment.owner.withoutBodies = true;
    const { begun: waiting } = await deployment.afterPages(10, () => Array.from({ length: 10 }, () => read(app, sessionId, 'wait_for_data=60')));
    deployment.queries.length = 0;

    await deployment.owner.append(sessionId, SAY('a'), SAY('b'));

    for (const reply of await Promise.all(waiting)) expect(offsetsOf(reply)).toEqual([0, 1]);
    expect(deployment.queries).toEqual(['agent-gateway-page-events']);
  });
});
