import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SlotMap } from './slot-map.ts';

describe('a slot map', () => {
  it('holds what was added and not removed, whatever the order', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 9 }), { maxLength: 60 }), (picks) => {
        const slotMap = new SlotMap<object>();
        const held: { value: object; slot: number }[] = [];
        for (const pick of picks) {
          if (pick % 3 === 0 && held.length > 0) {
            const [gone] = held.splice(pick % held.length, 1);
            if (gone !== undefined) slotMap.remove(gone.slot);
          } else {
            const value = {};
            held.push({ value, slot: slotMap.add(value) });
          }
          expect(slotMap.size).toBe(held.length);
          for (const { value, slot } of held) expect(slotMap.get(slot)).toBe(value);
        }
        expect(new Set(slotMap.values())).toEqual(new Set(held.map(({ value }) => value)));
        expect(slotMap.values()).toHaveLength(held.length);
      }),
    );
  });

  it('has no more slots than were ever in use at once', () => {
    const slotMap = new SlotMap<string>();
    const slots = new Set<number>();
    for (let round = 0; round < 100; round += 1) {
      const [one, other] = [slotMap.add('one'), slotMap.add('other')];
      slots.add(one).add(other);
      slotMap.remove(one);
      slotMap.remove(other);
    }

    expect(slots.size).toBe(2);
    expect([...slots, 2].map((slot) => slotMap.get(slot))).toEqual([undefined, undefined, undefined]);
  });
});
