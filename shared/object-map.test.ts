import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ObjectMap } from './object-map.ts';

describe('an object map', () => {
  it('has no key that was never set, whatever its name', () => {
    const objectMap = new ObjectMap<number>();

    for (const name of ['__proto__', 'constructor', 'toString', '']) {
      expect(objectMap.get(name)).toBeUndefined();
      expect(objectMap.has(name)).toBe(false);
      expect(objectMap.delete(name)).toBe(false);
    }
    expect(objectMap.size).toBe(0);
  });

  it('behaves like a Map under any operations', () => {
    const key = fc.constantFrom('a', 'b', '__proto__', 'constructor', '7', '');
    const step = fc.oneof(
      fc.record({ does: fc.constant('set'), key, value: fc.oneof(fc.integer(), fc.constant(undefined)) }),
      fc.record({ does: fc.constant('delete'), key, value: fc.constant(0) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const objectMap = new ObjectMap<number | undefined>();
        const map = new Map<string, number | undefined>();
        for (const { does, key: name, value } of steps) {
          if (does === 'delete') expect(objectMap.delete(name)).toBe(map.delete(name));
          else {
            objectMap.set(name, value);
            map.set(name, value);
          }
          expect(objectMap.size).toBe(map.size);
          expect(objectMap.has(name)).toBe(map.has(name));
          expect(objectMap.get(name)).toBe(map.get(name));
        }
        expect(objectMap.values().sort()).toEqual([...map.values()].sort());
      }),
    );
  });

  it('can be changed while its values are iterated', () => {
    const objectMap = new ObjectMap<string>();
    for (const name of ['a', 'b', 'c']) objectMap.set(name, name);

    const seen = objectMap.values().map((name) => (objectMap.delete(name) ? name : 'gone'));

    expect(seen.sort()).toEqual(['a', 'b', 'c']);
    expect(objectMap.values()).toEqual([]);
  });
});
