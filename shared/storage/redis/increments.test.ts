import { expect, it } from 'vitest';
import { Increments } from './increments.ts';

it('sends the additions of a flush as one script, at most 256 keys each, and settles each by its answer', async () => {
  const sent: { keys: string[]; parameters: number[] }[] = [];
  const increments = new Increments(async (keys, parameters) => {
    sent.push({ keys, parameters });
    return keys.map((key, index) => (key === 'text' ? 'WRONGTYPE of a key' : String(parameters[2 * index])));
  });
  const sums = [increments.add('one', 3, 50), increments.add('text', 1, 60), increments.add('two', -7, 70)];
  expect(sent).toEqual([]);
  increments.flush();
  expect(increments.isEmpty).toBe(true);
  expect(await Promise.allSettled(sums)).toMatchObject([{ value: 3 }, { reason: { message: 'WRONGTYPE of a key' } }, { value: -7 }]);
  expect(sent).toEqual([{ keys: ['one', 'text', 'two'], parameters: [3, 50, 1, 60, -7, 70] }]);

  const many = Array.from({ length: 600 }, (_, index) => increments.add(`k${index}`, index, 1));
  increments.flush();
  expect(await Promise.all(many)).toEqual(Array.from({ length: 600 }, (_, index) => index));
  expect(sent.slice(1).map(({ keys }) => keys.length)).toEqual([256, 256, 88]);
});

it('makes the additions to a counter one, unless their sum is beyond what a number holds, and each gets the sum behind it', async () => {
  const sent: { keys: string[]; parameters: number[] }[] = [];
  const counted = new Map([['one', 100]]);
  const increments = new Increments(async (keys, parameters) => {
    sent.push({ keys, parameters });
    return keys.map((key, index) => {
      counted.set(key, (counted.get(key) ?? 0) + (parameters[2 * index] ?? 0));
      return String(counted.get(key));
    });
  });
  const sums = [increments.add('one', 3, 50), increments.add('two', 1, 60), increments.add('one', -7, 70), increments.add('one', 4, 50)];
  increments.flush();
  expect(await Promise.all(sums)).toEqual([103, 1, 96, 100]);
  expect(sent).toEqual([{ keys: ['one', 'two'], parameters: [0, 50, 1, 60] }]);

  void increments.add('large', Number.MAX_SAFE_INTEGER, 50);
  void increments.add('large', 1, 50);
  increments.flush();
  expect(sent[1]).toEqual({ keys: ['large', 'large'], parameters: [Number.MAX_SAFE_INTEGER, 50, 1, 50] });
});

it('rejects all additions of a script that failed, and none of the next', async () => {
  let isAway = true;
  const increments = new Increments(async (keys) => {
    if (isAway) throw new Error('away');
    return keys.map(() => '1');
  });
  const lost = [increments.add('one', 1, 1), increments.add('two', 1, 1)];
  increments.flush();
  expect(await Promise.allSettled(lost)).toMatchObject([{ reason: { message: 'away' } }, { reason: { message: 'away' } }]);
  isAway = false;
  const next = increments.add('one', 1, 1);
  increments.flush();
  expect(await next).toBe(1);
});
