import { once } from 'node:events';
import { expect, it } from 'vitest';
import { openEchoSocket } from './http/test-support/echo-socket.ts';
import { within } from './within.ts';

const never = new Promise<string>(() => {});
const late = () => 'late';

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

it('leaves no timer behind', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
  const before = timers();
  await within(60_000, Promise.resolve('value'), late);
  expect(timers()).toBe(before);
});
