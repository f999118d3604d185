import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { addressOf, boot } from './boot.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const never = () => new Promise<never>(() => {});

describe('a boot', () => {
  it('fails with the name of the step that it is at when the time is over', async () => {
    const booting = boot(1_000, async (step) => {
      await step('connecting to NATS at 127.0.0.1:4222', async () => {});
      await step('connecting to Redis at 127.0.0.1:6379', never);
    });
    const failed = expect(booting).rejects.toMatchObject({ code: 'service.not_ready', message: 'connecting to Redis at 127.0.0.1:6379 has taken too long' });
    await vi.advanceTimersByTimeAsync(1_000);

    await failed;
  });

  it('fails as its step does, at once', async () => {
    const refused = new Error('refused');

    await expect(boot(1_000, (step) => step('connecting', () => Promise.reject(refused)))).rejects.toBe(refused);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('has no time left when loading the program took all of it', async () => {
    const failed = expect(boot(-5, never)).rejects.toMatchObject({ code: 'service.not_ready' });
    await vi.advanceTimersByTimeAsync(0);

    await failed;
  });

  it('gives what its start gives', async () => {
    expect(await boot(1_000, (step) => step('counting', async () => 3))).toBe(3);
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
