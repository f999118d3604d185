import { once } from 'node:events';
import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { openEchoSocket } from './http/test-support/echo-socket.ts';
import { within } from './within.ts';

const never = new Promise<string>(() => {});
const late = () => 'late';

async function afterTicks(count: number): Promise<string> {
  for (let tick = 0; tick < count; tick += 1) await nextTick();
  return 'value';
}

function pauseFor(ms: number): void {
  const endsAt = performance.now() + ms;
  while (performance.now() < endsAt);
}

it('is the promise’s outcome in time, a rejection included', async () => {
  expect(await within(60_000, Promise.resolve('value'), late)).toBe('value');
  await expect(within(60_000, Promise.reject(new Error('refused')), late)).rejects.toThrow('refused');
});

it('is what `late` returns or throws after the limit, and a later rejection is ignored', async () => {
  let refuse = (_: Error): void => {};
  const refused = new Promise<string>((_, reject) => {
    refuse = reject;
  });
  expect(await within(1, refused, late)).toBe('late');
  refuse(new Error('unhandled'));
  await expect(
    within(1, never, () => {
      throw new Error('too late');
    }),
  ).rejects.toThrow('too late');
});

it('is an answer that arrived while the process was paused beyond the limit', async () => {
  const { socket, pauseUntil } = await openEchoSocket();

  const answer = within(1, once(socket, 'data'), late);
  const limit = performance.now() + 1;
  socket.write('value');
  pauseUntil(limit);

  expect(String(await answer)).toBe('value');
});

it('counts late ticks once: an answer that takes some of them is not late for the process that was paused', async () => {
  const pausedWith = (parts: number) => {
    const answer = within(5, afterTicks(4), late, parts);
    pauseFor(20);
    return answer;
  };
  expect(await pausedWith(1)).toBe('late');
  expect(await pausedWith(5)).toBe('value');
  expect(await within(5, never, late, 5)).toBe('late');
});

it('leaves no timer behind', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
  const before = timers();
  await within(60_000, Promise.resolve('value'), late);
  expect(timers()).toBe(before);
});
