import { describe, expect, it } from 'vitest';
import { expectRedelivered, repeatsBeyond } from './repeated-calls.ts';

describe('repeats of calls', () => {
  it('are those beyond what a fault allows of each call', () => {
    const calls = ['one', 'two', 'two', 'three', 'three', 'three'];
    expect(repeatsBeyond(0, calls)).toEqual(['two', 'three', 'three']);
    expect(repeatsBeyond(1, calls)).toEqual(['three']);
    expect(repeatsBeyond(2, calls)).toEqual([]);
  });

  it('have a redelivery each', () => {
    expectRedelivered([], 0);
    expectRedelivered(['one', 'two'], 2);
    expect(() => expectRedelivered(['one'], 0)).toThrow('a model call was made again too often; 0 were redelivered: ["one"]');
    expect(() => expectRedelivered(['one', 'one'], 1)).toThrow('a model call was made again too often');
    expectRedelivered(['one', 'one', 'two'], 20);
    expect(() => expectRedelivered(['one', 'one', 'one'], 20)).toThrow('a model call was made again too often');
  });
});
