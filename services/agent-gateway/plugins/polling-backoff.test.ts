import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { buildApp } from '../app.ts';
import { API_KEY, BEARER, newSession, openTestDeployment, read, type TestDeployment } from '../test-support/test-deployment.ts';

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

describe('x-polling-backoff', () => {
  const backoffOf = async (reply: ReturnType<typeof read>) => (await reply).headers['x-polling-backoff'];

  /** A cache with entries that expire by the test's clock. */
  function appWithClock() {
    let nowMs = 0;
    const clock = { nowMs: () => nowMs };
    const cache: Cache = memoryCache({ clock });
    const app = buildApp({ ...deployment.deps({ clock }), cache });
    return {
      app,
      pass: (ms: number) => {
        nowMs += ms;
      },
    };
  }

  it('doubles up to 30 for a client that polls repeatedly without waiting', async () => {
    const { app } = appWithClock();
    const sessionId = await newSession(app);

    const seen: unknown[] = [];
    for (let n = 0; n < 8; n += 1) seen.push(await backoffOf(read(app, sessionId, 'wait_for_data=0')));

    expect(seen).toEqual(['1', '2', '4', '8', '16', '30', '30', '30']);
    await app.close();
  });

  it('starts anew for a client that has waited, and for one that got events', async () => {
    const { app, pass } = appWithClock();
    const sessionId = await newSession(app);
    const ask = () => backoffOf(read(app, sessionId, 'wait_for_data=0&min_offset=0&kinds=assistant_message'));
    expect([await ask(), await ask()]).toEqual(['1', '2']);

    pass(1_001);
    expect([await ask(), await ask()]).toEqual(['1', '2']);

    await deployment.owner.append(sessionId, SAY('Hello'));
    expect(await ask()).toBe('0');
    expect(await backoffOf(read(app, sessionId, 'wait_for_data=0&min_offset=1'))).toBe('1');
    await app.close();
  });

  it.each([
    ['without waiting', 'wait_for_data=0&'],
    ['as a long-poll that is answered at once', ''],
  ])('rises for a client that reads the same offset again and again, %s, and not for one that goes on', async (_case, query) => {
    const { app, pass } = appWithClock();
    const sessionId = await newSession(app);
    for (const text of ['One', 'Two', 'Three']) await deployment.owner.append(sessionId, SAY(text));
    const from = (offset: number) => backoffOf(read(app, sessionId, `${query}min_offset=${offset}`));

    const repeated = [await from(0), await from(0), await from(0), await from(0), await from(0), await from(0), await from(0)];
    expect(repeated).toEqual(['0', '1', '2', '4', '8', '16', '30']);

    expect([await from(1), await from(2)]).toEqual(['0', '0']);
    pass(1_001);
    expect([await from(2), await from(2)]).toEqual(['0', '1']);
    pass(1_000);
    expect(await from(2)).toBe('0');
    await app.close();
  });

  it('counts each session and each client by itself', async () => {
    const { app } = appWithClock();
    const [one, other] = [await newSession(app), await newSession(app)];
    await read(app, one, 'wait_for_data=0');

    const elsewhere = app.inject({ url: `/sessions/${one}/events?wait_for_data=0`, headers: BEARER, remoteAddress: '192.0.2.7' });

    expect(await backoffOf(elsewhere)).toBe('1');
    expect(await backoffOf(read(app, other, 'wait_for_data=0'))).toBe('1');
    expect(await backoffOf(read(app, one, 'wait_for_data=0'))).toBe('2');
    await app.close();
  });

  it('has its minimum when the cache is away', async () => {
    const cache: Cache = { ...deployment.cache, get: () => Promise.reject(new Error('no cache')), delete: () => Promise.reject(new Error('no cache')) };
    const app = buildApp({ ...deployment.deps(), cache });
    const sessionId = await newSession(app);

    expect(await backoffOf(read(app, sessionId, 'wait_for_data=0'))).toBe('1');
    await deployment.owner.append(sessionId, SAY('Hello'));
    expect(await backoffOf(read(app, sessionId, 'wait_for_data=0'))).toBe('0');
    await app.close();
  });

  it('is an integer whatever the cache holds', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    for (const text of ['soon', '-4', '0.5', '']) {
      const cache: Cache = { ...deployment.cache, get: async () => text };
      const other = buildApp({ ...deployment.deps(), cache });
      expect(await backoffOf(read(other, sessionId, 'wait_for_data=0'))).toBe('1');
      await other.close();
    }
  });

  it('is not sent with a refused key', async () => {
    const reply = await deployment.app().inject({ url: '/sessions/ses_1/events', headers: { authorization: `Bearer ${API_KEY}x` } });

    expect(reply.statusCode).toBe(401);
  });
});
