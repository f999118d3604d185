import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Slab } from './slot-map.ts';

describe('a slab', () => {
  it('holds what was added and not removed, whatever the order', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 9 }), { maxLength: 60 }), (picks) => {
        const slab = new Slab<object>();
        const held: { value: object; place: number }[] = [];
        for (const pick of picks) {
          if (pick % 3 === 0 && held.length > 0) {
            const [gone] = held.splice(pick % held.length, 1);
            if (gone !== undefined) slab.remove(gone.place);
          } else {
            const value = {};
            held.push({ value, place: slab.add(value) });
          }
          expect(slab.size).toBe(held.length);
          for (const { value, place } of held) expect(slab.get(place)).toBe(value);
        }
        expect(new Set(slab.values())).toEqual(new Set(held.map(({ value }) => value)));
        expect(slab.values()).toHaveLength(held.length);
      }),
    );
  });

  it('takes no more places than were ever in use at once', () => {
    const slab = new Slab<string>();
    const places = new Set<number>();
    for (let round = 0; round < 100; round += 1) {
      const [one, other] = [slab.add('one'), slab.add('other')];
      places.add(one).add(other);
      slab.remove(one);
      slab.remove(other);
    }

    expect(places.size).toBe(2);
    expect([...places, 2].map((place) => slab.get(place))).toEqual([undefined, undefined, undefined]);
  });
});
