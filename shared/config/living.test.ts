import { describe, expect, it } from 'vitest';
import { fixed, LivingValue, livingOf } from './living.ts';

describe('replacing', () => {
  it('replaces what derives from the value with it, once each, and notifies last', () => {
    const value = new LivingValue(1);
    let made = 0;
    const doubled = value.derive((one) => {
      made += 1;
      return one * 2;
    });
    const text = doubled.derive((two) => `<${two}>`);
    const seen: unknown[] = [];
    value.onChange((next) => seen.push(next, doubled.current(), text.current()));
    doubled.onChange((next) => seen.push(next, value.current(), text.current()));

    value.replace(5);

    expect(seen).toEqual([10, 5, '<10>', 5, 10, '<10>']);
    expect(made).toBe(2);
  });

  it('replaces nothing when one derived value can not be made, and discards the others', () => {
    const value = new LivingValue(1);
    const discarded: string[] = [];
    const first = value.derive(
      (one) => `first ${one}`,
      (text) => discarded.push(text),
    );
    const inner = first.derive(
      (text) => `inner of ${text}`,
      (text) => discarded.push(text),
    );
    const second = value.derive((one) => {
      if (one === 2) throw new Error('refused');
      return one;
    });
    const seen: number[] = [];
    value.onChange((next) => seen.push(next));

    expect(() => value.replace(2)).toThrow('refused');
    expect([value.current(), first.current(), inner.current(), second.current()]).toEqual([1, 'first 1', 'inner of first 1', 1]);
    expect(discarded).toEqual(['inner of first 2', 'first 2']);
    expect(seen).toEqual([]);

    value.replace(3);
    expect([first.current(), inner.current(), second.current(), seen]).toEqual(['first 3', 'inner of first 3', 3, [3]]);
  });

  it('notifies no listener that was unregistered', () => {
    const value = new LivingValue(1);
    const seen: number[] = [];
    value.onChange((next) => seen.push(next))();
    value.replace(2);
    expect(seen).toEqual([]);
  });
});

it('takes a value that never changes for a living one', () => {
  const living = fixed({ one: 1 });
  expect(livingOf(living)).toBe(living);
  expect(livingOf({ one: 1 }).current()).toEqual({ one: 1 });
});
