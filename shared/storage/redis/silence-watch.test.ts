import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { watchSilence } from './silence-watch.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function openConnection(bytesRead = 0) {
  return {
    bytesRead,
    destroyed: false,
    destroy() {
      this.destroyed = true;
    },
  };
}

function watched() {
  const redis = Object.assign(new EventEmitter(), { stream: openConnection(), commandQueue: { length: 1 } });
  watchSilence(redis as unknown as Redis, 2_000);
  return redis;
}

it('closes a connection that is silent while replies are outstanding, and the next one as late', () => {
  const redis = watched();
  vi.advanceTimersByTime(2_000);
  expect(redis.stream.destroyed).toBe(false);
  vi.advanceTimersByTime(250);
  expect(redis.stream.destroyed).toBe(true);

  redis.stream = openConnection();
  vi.advanceTimersByTime(2_000);
  expect(redis.stream.destroyed).toBe(false);
  vi.advanceTimersByTime(250);
  expect(redis.stream.destroyed).toBe(true);
});

it('closes none that brings data, or that owes no reply', () => {
  const redis = watched();
  for (let read = 1; read < 20; read += 1) {
    redis.stream.bytesRead = read;
    vi.advanceTimersByTime(1_500);
  }
  redis.commandQueue.length = 0;
  vi.advanceTimersByTime(60_000);
  expect(redis.stream.destroyed).toBe(false);
  redis.emit('end');
  expect(vi.getTimerCount()).toBe(0);
});
