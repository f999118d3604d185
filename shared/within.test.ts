import { expect, it } from 'vitest';
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

it('leaves no timer behind', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
  const before = timers();
  await within(60_000, Promise.resolve('value'), late);
  expect(timers()).toBe(before);
});
