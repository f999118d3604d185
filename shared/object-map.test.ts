import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Dictionary } from './object-map.ts';

describe('a dictionary', () => {
  it('knows nothing that was never put there, whatever its name', () => {
    const dictionary = new Dictionary<number>();

    for (const name of ['__proto__', 'constructor', 'toString', '']) {
      expect(dictionary.get(name)).toBeUndefined();
      expect(dictionary.has(name)).toBe(false);
      expect(dictionary.delete(name)).toBe(false);
    }
    expect(dictionary.size).toBe(0);
  });

  it('answers as a Map does, whatever is done to it', () => {
    const key = fc.constantFrom('a', 'b', '__proto__', 'constructor', '7', '');
    const step = fc.oneof(
      fc.record({ does: fc.constant('set'), key, value: fc.oneof(fc.integer(), fc.constant(undefined)) }),
      fc.record({ does: fc.constant('delete'), key, value: fc.constant(0) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const dictionary = new Dictionary<number | undefined>();
        const map = new Map<string, number | undefined>();
        for (const { does, key: name, value } of steps) {
          if (does === 'delete') expect(dictionary.delete(name)).toBe(map.delete(name));
          else {
            dictionary.set(name, value);
            map.set(name, value);
          }
          expect(dictionary.size).toBe(map.size);
          expect(dictionary.has(name)).toBe(map.has(name));
          expect(dictionary.get(name)).toBe(map.get(name));
        }
        expect(dictionary.values().sort()).toEqual([...map.values()].sort());
      }),
    );
  });

  it('can be changed while its values are gone through', () => {
    const dictionary = new Dictionary<string>();
    for (const name of ['a', 'b', 'c']) dictionary.set(name, name);

    const seen = dictionary.values().map((name) => (dictionary.delete(name) ? name : 'gone'));

    expect(seen.sort()).toEqual(['a', 'b', 'c']);
    expect(dictionary.values()).toEqual([]);
  });
});
