import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { ModelCalls } from './model-calls.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it.each(['subscribe', 'onReconnect'] as const)('a call on a closed bus fails, and leaves no timer that replays it for ever: %s throws', async (failing) => {
  const fails = () => {
    throw new Error('the bus is closed');
  };
  const subscription = { ready: async () => {}, stop: async () => {} };
  const calls = new ModelCalls('webhook', {
    bus: {
      work: { publish: async () => ({ duplicate: false }) },
      tokens: { replay: async () => [], subscribe: failing === 'subscribe' ? fails : () => subscription },
      onReconnect: failing === 'onReconnect' ? fails : () => subscription,
    } as never,
    settings: { modelKey: 'key' } as never,
    clock: { nowMs: () => 0 },
    waits: { modelCallMs: 60_000, modelSilenceMs: 1_000, subscribedMs: 1_000 },
    log: silentLog,
  });

  await expect(calls.embed({ model: 'a/b', dimensions: 2, traceparent: '00-1-1-01', texts: ['x'] })).rejects.toThrow('the bus is closed');

  expect(vi.getTimerCount()).toBe(0);
});
