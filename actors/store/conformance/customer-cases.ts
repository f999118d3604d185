import { describe, expect, it } from 'vitest';
import { type UnderTest, unique } from './store-under-test.ts';

export function customerCases(underTest: UnderTest): void {
  describe('a customer', () => {
    it('is read with its values, those of its tags, and those of all customers', async () => {
      const [id, other, tag, name] = [unique('cus'), unique('cus'), unique('tag'), unique('variable')];
      const { store, others } = underTest();
      await others.storeCustomer({ id, name: 'Ada "A" \u{1f600}', tags: [tag, 'none'] });
      await others.storeValue('DEFAULT', name, { level: 1 });
      await others.storeValue(`tag:${tag}`, name, [1, null]);
      await others.storeValue(id, name, 'gold');
      await others.storeValue(id, `${name}-unasked`, 'gold');
      await others.storeValue(other, name, 'silver');

      const { values, ...customer } = await store.customers.read(id, [name]);

      expect(Math.abs((values[0]?.updatedAtMs ?? 0) - Date.now())).toBeLessThan(3_600_000);
      expect(customer).toEqual({ name: 'Ada "A" \u{1f600}', tags: [tag, 'none'] });
      expect(values).toHaveLength(3);
      expect(values).toEqual(
        expect.arrayContaining([
          { key: 'DEFAULT', name, data: { level: 1 }, updatedAtMs: expect.any(Number) },
          { key: `tag:${tag}`, name, data: [1, null], updatedAtMs: expect.any(Number) },
          { key: id, name, data: 'gold', updatedAtMs: expect.any(Number) },
        ]),
      );
      expect(await store.customers.read(id, [])).toEqual({ ...customer, values: [] });
    });

    it('that does not exist has the values of all customers', async () => {
      const name = unique('variable');
      const { store, others } = underTest();
      await others.storeValue('DEFAULT', name, false);

      expect(await store.customers.read(unique('cus'), [name])).toEqual({
        name: null,
        tags: [],
        values: [{ key: 'DEFAULT', name, data: false, updatedAtMs: expect.any(Number) }],
      });
    });
  });
}
