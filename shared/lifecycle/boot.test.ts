import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { addressOf, boot, type Waiting } from './boot.ts';

/** Of the event loop, by this clock: what has no answer is late a tick behind its limit. */
const TICK_MS = 1;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const ignore = () => {};
const never = () => new Promise<never>(() => {});

describe('a boot', () => {
  it('fails with the name of the step whose time is over', async () => {
    const booting = boot(ignore, async (step) => {
      await step('connecting to NATS at 127.0.0.1:4222', async () => {});
      await step('connecting to Redis at 127.0.0.1:6379', never, { limitMs: 1_000 });
    });
    const failed = expect(booting).rejects.toMatchObject({ code: 'service.not_ready', message: 'connecting to Redis at 127.0.0.1:6379 has timed out' });
    await vi.advanceTimersByTimeAsync(1_000 + TICK_MS);

    await failed;
    expect(vi.getTimerCount()).toBe(0);
  });

  it('fails as its step does, at once', async () => {
    const refused = new Error('refused');

    await expect(boot(ignore, (step) => step('connecting', () => Promise.reject(refused)))).rejects.toBe(refused);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('goes on when it is only slow, and logs every 5 s what it waits for', async () => {
    const waiting: Waiting[] = [];
    let end = () => {};
    const booting = boot(
      (onReason) => waiting.push(onReason),
      (step) =>
        step(
          'migrating',
          (because) => {
            setTimeout(() => because('session 7 holds the lock'), 6_000);
            return new Promise<string>((resolve) => {
              end = () => resolve('migrated');
            });
          },
          { limitMs: null },
        ),
    );
    await vi.advanceTimersByTimeAsync(12_000);

    expect(waiting).toMatchObject([
      { step: 'migrating', reason: null },
      { step: 'migrating', reason: 'session 7 holds the lock' },
    ]);
    await vi.advanceTimersByTimeAsync(600_000);
    end();
    expect(await booting).toBe('migrated');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ends a step that hangs without a bound of its own', async () => {
    const failed = expect(boot(ignore, (step) => step('acquiring partitions', never))).rejects.toMatchObject({ code: 'service.not_ready' });
    await vi.advanceTimersByTimeAsync(60_000 + TICK_MS);

    await failed;
  });

  it('returns the result of its start', async () => {
    expect(await boot(ignore, (step) => step('counting', async () => 3))).toBe(3);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('the address of a store', () => {
  it.each([
    ['postgres://anna:secret@db.internal/switchyard?password=secret', 'db.internal:5432'],
    ['redis://:secret@[::1]:6380/2', '[::1]:6380'],
    ['nats://one:4222, nats://two', 'one:4222, two:4222'],
    ['secret', 'an address that is not a URL'],
  ])('of %s is %s', (url, address) => {
    expect(addressOf(url)).toBe(address);
  });
});
