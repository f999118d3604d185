import { beforeEach, expect, it } from 'vitest';
import { SlotChanges } from './slot-changes.ts';

let sent: string[];
let changes: SlotChanges;

beforeEach(() => {
  sent = [];
  changes = new SlotChanges({
    acquire: async (key, limit, lifetimeMs, owners) => {
      sent.push(`acquire ${key} ${limit} ${lifetimeMs} ${owners.join()}`);
      if (key === 'text') throw new Error('WRONGTYPE of a key');
      return owners.map((_, index) => (index < limit ? 1 : 0));
    },
    release: async (key, owners) => {
      sent.push(`release ${key} ${owners.join()}`);
      if (key === 'text') throw new Error('WRONGTYPE of a key');
    },
  });
});

it('sends the acquisitions of a flush as one command for each key, behind one of its releases, and settles each by its answer', async () => {
  const taken = [
    changes.acquire('one', 'a', 2, 50),
    changes.acquire('one', 'b', 2, 50),
    changes.acquire('two', 'c', 1, 50),
    changes.acquire('one', 'd', 2, 50),
  ];
  const released = [changes.release('one', 'x'), changes.release('one', 'y'), changes.release('text', 'z')];
  expect(sent).toEqual([]);
  changes.flush();
  expect(changes.isEmpty).toBe(true);

  expect(await Promise.all(taken)).toEqual([true, true, true, false]);
  expect(await Promise.allSettled(released)).toMatchObject([{ status: 'fulfilled' }, { status: 'fulfilled' }, { reason: { message: 'WRONGTYPE of a key' } }]);
  expect(sent).toEqual(['release one x,y', 'acquire one 2 50 a,b,d', 'acquire two 1 50 c', 'release text z']);
});

it('keeps limits and times to live apart, and rejects all of a command that failed, and none of the next', async () => {
  const taken = [
    changes.acquire('one', 'a', 2, 50),
    changes.acquire('one', 'b', 1, 50),
    changes.acquire('one', 'c', 2, 60),
    changes.acquire('text', 'd', 1, 50),
  ];
  changes.flush();

  expect(await Promise.allSettled(taken)).toMatchObject([{ value: true }, { value: true }, { value: true }, { reason: { message: 'WRONGTYPE of a key' } }]);
  expect(sent).toHaveLength(4);
});

it('releases a slot behind its acquisition in the same tick, and acquires one again behind its release', async () => {
  void changes.acquire('one', 'a', 1, 50);
  void changes.release('one', 'a');
  const again = changes.acquire('one', 'a', 1, 50);
  expect(changes.isEmpty).toBe(false);
  changes.flush();

  expect(await again).toBe(true);
  expect(sent).toEqual(['acquire one 1 50 a', 'release one a', 'acquire one 1 50 a']);
});

it('has at most 500 owners in a command', async () => {
  const owners = Array.from({ length: 1_100 }, (_, index) => `o${index}`);
  const taken = owners.map((owner) => changes.acquire('one', owner, 400, 50));
  const released = owners.map((owner) => changes.release('two', owner));
  changes.flush();

  expect((await Promise.all(taken)).filter(Boolean)).toHaveLength(400 + 400 + 100);
  await Promise.all(released);
  expect(sent.map((command) => command.split(',').length)).toEqual([500, 500, 100, 500, 500, 100]);
});
