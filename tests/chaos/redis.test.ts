import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { startTestRedis, type TestRedis } from '../../scripts/servers/test-services.mjs';
import type { Cache } from '../../shared/storage/cache.ts';
import { openRedis } from '../../shared/storage/redis/open-redis.ts';
import type { Log } from '../../shared/telemetry/log.ts';
import { eventually } from '../helpers/eventually.ts';
import { logLines } from '../helpers/log-lines.ts';

const LONG_MS = 60_000;

/** The error of a call that reached its timeout. */
const TIMED_OUT = 'no reply within 1000 ms';
/** The error of a call without a connection, which fails at once. */
const NOT_SENT = "Stream isn't writeable and enableOfflineQueue options is false";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function ownServer(options: Parameters<typeof startTestRedis>[0] = {}): Promise<TestRedis> {
  const server = await startTestRedis(options);
  cleanups.push(() => server.close());
  return server;
}

async function openAt(url: string, log: Log = logLines().log): Promise<Cache> {
  const cache = await openRedis({ url, log });
  cleanups.push(() => cache.close());
  return cache;
}

/** One call of each kind. */
function everyCall(cache: Cache): Promise<PromiseSettledResult<unknown>[]> {
  return Promise.allSettled([
    cache.get('value'),
    cache.set('value', 'text', LONG_MS),
    cache.delete('value'),
    cache.increment('counter', 1, LONG_MS),
    cache.acquireSlot('slots', 'me', 1, LONG_MS),
    cache.releaseSlot('slots', 'me'),
  ]);
}

/** Fake timers, which the test advances. Sockets go on. */
function stopTimers(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
}

function reasonsOf(results: PromiseSettledResult<unknown>[]): string[] {
  return results.map((result) => (result.status === 'rejected' ? String(result.reason.cause?.message) : 'nothing failed'));
}

function expectAllRefused(results: PromiseSettledResult<unknown>[]): void {
  for (const result of results) expect(result).toMatchObject({ status: 'rejected', reason: { code: 'service.unreachable' } });
}

describe('a Redis that is not running', () => {
  it('delays no process by more than two seconds', async () => {
    const server = await ownServer({ started: false });
    stopTimers();
    const onOpen = vi.fn();
    const opening = openAt(server.url).then(onOpen);
    await vi.advanceTimersByTimeAsync(1_999);
    expect(onOpen).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    await opening;
  });

  it('fails every call at once, and is used as soon as it runs', async () => {
    const server = await ownServer({ started: false });
    const { log, messages, lines } = logLines();

    const cache = await openAt(server.url, log);
    const refused = await everyCall(cache);

    expectAllRefused(refused);
    expect(reasonsOf(refused)).toEqual(refused.map(() => NOT_SENT));
    const name = `Redis at 127.0.0.1:${server.port}/0`;
    expect(messages()).toContain(`${name} is unreachable`);
    expect(lines[0]).toContain('ECONNREFUSED');

    await server.start();
    await eventually(() => cache.set('value', 'text', LONG_MS).then(() => true));
    expect(await cache.get('value')).toBe('text');
    expect(messages().at(-1)).toBe(`${name} is reachable again`);
    // Reconnects go on all the time, without a log line each.
    expect(lines.length).toBeLessThan(6);
  });

  it('does not delay a close, and is not called after it', async () => {
    const server = await ownServer({ started: false });
    const cache = await openAt(server.url);

    // Timers stand still: nothing that waits for one ends.
    stopTimers();
    await cache.close();
    await expect(cache.get('value')).rejects.toMatchObject({ code: 'storage.closed' });
  });
});

describe('a Redis that is killed and restarted', () => {
  it('fails what is in flight and everything after, and all kinds of entries work again after the restart', async () => {
    const server = await ownServer();
    const { log, lines } = logLines();
    const cache = await openAt(server.url, log);
    await everyCall(cache);

    for (let round = 0; round < 3; round += 1) {
      await server.kill();
      expectAllRefused(await everyCall(cache));

      await server.start();
      await eventually(() => cache.get('value').then(() => true));
      // The restarted server is empty, without the scripts that were loaded too.
      expect(await cache.increment('counter', 1, LONG_MS)).toBe(1);
      expect(await cache.acquireSlot('slots', 'me', 1, LONG_MS)).toBe(true);
    }
    expect(lines.length).toBeLessThan(20);
  });
});

describe('a Redis that stops responding', () => {
  it('fails every call after a second', async () => {
    const server = await ownServer();
    const cache = await openAt(server.url);
    await everyCall(cache);
    server.freeze();
    stopTimers();
    const onResults = vi.fn();
    const refused = everyCall(cache).then((results) => {
      onResults();
      return results;
    });
    await vi.advanceTimersByTimeAsync(999);
    expect(onResults).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);

    const results = await refused;
    expectAllRefused(results);
    expect(reasonsOf(results)).toEqual(results.map(() => TIMED_OUT));
    server.thaw();
  });

  it('fails every call, later without waiting, sends no addition twice, and works again when it responds', async () => {
    const server = await ownServer();
    const cache = await openAt(server.url);
    await cache.increment('counter', 1, LONG_MS);
    server.freeze();

    // Until the connection is dropped, and new ones that don't respond either.
    let attempts = 0;
    let [slow, quick] = [0, 0];
    await eventually(async () => {
      attempts += 1;
      const result = await Promise.allSettled([cache.increment('counter', 1, LONG_MS)]);
      expectAllRefused(result);
      if (reasonsOf(result).includes(NOT_SENT)) quick += 1;
      else slow += 1;
      return slow >= 2 && quick >= 50;
    });
    server.thaw();

    const sum = await eventually(() => cache.increment('counter', 1, LONG_MS));
    expect(sum).toBeGreaterThanOrEqual(2);
    expect(sum).toBeLessThanOrEqual(attempts + 2);
  });

  it('is waited for by a bounded number of calls', async () => {
    const server = await ownServer();
    const cache = await openAt(server.url);
    server.freeze();

    const results = await Promise.allSettled(Array.from({ length: 10_001 }, () => cache.get('value')));

    expect(results.at(-1)).toMatchObject({ status: 'rejected', reason: { code: 'service.not_ready' } });
    expectAllRefused(results.slice(0, -1));
  });

  it('does not delay a close that runs into its timeout', async () => {
    const server = await ownServer();
    const cache = await openAt(server.url);
    server.freeze();

    stopTimers();
    const onClosed = vi.fn();
    const closing = cache.close().then(onClosed);
    // QUIT has the timeout of any call.
    await vi.advanceTimersByTimeAsync(999);
    expect(onClosed).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    await closing;
  });
});

describe('a Redis with a password', () => {
  it('logs that the password is wrong or missing, and never prints it', async () => {
    const server = await ownServer({ password: 'correct/horse' });
    for (const [credentials, reason] of [
      ['default:hidden@', 'it refuses the user or the password'],
      ['someuser:hidden@', 'it refuses the user or the password'],
      ['', 'it requires a password, and the URL has none'],
    ]) {
      const { log, lines } = logLines();

      const cache = await openAt(`redis://${credentials}127.0.0.1:${server.port}`, log);
      const results = await everyCall(cache);

      expectAllRefused(results);
      expect(lines.filter((line) => JSON.parse(line).reason === reason)).toHaveLength(1);
      expect(
        lines.join('\n') + JSON.stringify(results) + results.map((result) => (result.status === 'rejected' ? String(result.reason.cause) : '')).join(),
      ).not.toMatch(/hidden|someuser/);
    }
  });

  it('accepts the right password, with any characters', async () => {
    const server = await ownServer({ password: 'correct/horse @ battery' });
    const cache = await openAt(server.url);

    await cache.set('value', 'text', LONG_MS);
    expect(await cache.get('value')).toBe('text');
  });
});
