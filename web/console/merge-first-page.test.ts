import { expect, it } from 'vitest';
import { mergeFirstPage } from './merge-first-page.ts';

interface Row {
  id: string;
  version: number;
}

const rowsOf = (ids: string, version: number): Row[] => [...ids].map((id) => ({ id, version }));
const merge = (items: Row[], page: readonly Row[], keyOf = ({ id }: Row) => id) => {
  const keys = new Set(items.map(({ id }) => id));
  return mergeFirstPage(items, page, keyOf, (key) => keys.has(key));
};

it('replaces items in their places, and puts new ones first', () => {
  const items = rowsOf('cba', 1);
  const added = merge(items, rowsOf('edca', 2));

  expect(items.map(({ id, version }) => `${id}${version}`)).toEqual(['e2', 'd2', 'c2', 'b1', 'a2']);
  expect(added.map(({ id }) => id)).toEqual(['e', 'd']);
});

it('looks at the start of a long list alone', () => {
  const items = Array.from({ length: 100_000 }, (_, at) => ({ id: `s${at}`, version: 1 }));
  let looks = 0;
  merge(items, [{ id: 'new', version: 2 }, ...items.slice(0, 100).map(({ id }) => ({ id, version: 2 }))], ({ id }) => {
    looks += 1;
    return id;
  });

  expect([items[0]?.id, items[100]?.version, items[101]?.version, items.length]).toEqual(['new', 2, 1, 100_001]);
  expect(looks).toBeLessThan(300);
});
