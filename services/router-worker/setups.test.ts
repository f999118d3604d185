import { expect, it, onTestFinished } from 'vitest';
import { LivingValue } from '#shared/config/living.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import type { OpenedSetup } from './router-setup.ts';
import { Setups } from './setups.ts';

const LONG_MS = 3_600_000;

function open({ formerMs = LONG_MS, maxFormer = 4 } = {}) {
  const closed: string[] = [];
  const setupOf = (hash: string) => ({ hash, close: async () => void closed.push(hash) }) as unknown as OpenedSetup;
  const living = new LivingValue(setupOf('a'));
  const setups = new Setups({ setup: living, log: silentLog, formerMs, maxFormer });
  onTestFinished(() => setups.stop());
  const hashOf = (hash?: string) => {
    const { setup, leave } = setups.enter(hash);
    leave();
    return setup.hash;
  };
  return { closed, setups, replace: (hash: string) => living.replace(setupOf(hash)), hashOf };
}

it('runs a call under the configuration that it was admitted under, and any other under the current one', () => {
  const { replace, hashOf } = open();
  replace('b');
  replace('c');
  expect(['a', 'b', 'c', 'unknown', undefined].map(hashOf)).toEqual(['a', 'b', 'c', 'c', 'c']);
});

it('closes a former setup with its last call, and not before its time is over', async () => {
  const { closed, setups, replace, hashOf } = open({ formerMs: 0 });
  const first = setups.enter('a');
  const second = setups.enter(undefined);
  replace('b');
  await expect.poll(() => hashOf('a')).toBe('b');
  expect(closed).toEqual([]);
  first.leave();
  expect(closed).toEqual([]);
  second.leave();
  expect(closed).toEqual(['a']);
});

it('drops the oldest of too many former setups', () => {
  const { closed, replace, hashOf } = open({ maxFormer: 2 });
  for (const hash of ['b', 'c', 'd']) replace(hash);
  expect(closed).toEqual(['a']);
  expect(['a', 'b'].map(hashOf)).toEqual(['d', 'b']);
});

it('runs calls under the newest of setups with the same content', () => {
  const { closed, setups, replace } = open({ maxFormer: 1 });
  const { setup } = setups.enter('a');
  replace('b');
  replace('a');
  expect(setups.enter('a').setup).not.toBe(setup);
  expect(closed).toEqual([]);
});

it('closes all when it stops, once each', async () => {
  const { closed, setups, replace } = open();
  const { leave } = setups.enter('a');
  replace('b');
  await setups.stop();
  leave();
  replace('c');
  expect(closed).toEqual(['b', 'a']);
});
