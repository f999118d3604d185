import fc from 'fast-check';
import { expect, it } from 'vitest';
import { inOrder } from './edges.ts';

const names = [...'abcdefgh'];
const pairs = fc.array(fc.tuple(fc.constantFrom(...names), fc.constantFrom(...names)), { maxLength: 16 });

it('puts each node behind its predecessors, once', () => {
  fc.assert(
    fc.property(pairs, fc.subarray(names), (given, nodes) => {
      const acyclic = given.filter(([from, to]) => from > to);
      const ordered = inOrder(new Set(nodes), acyclic);
      expect(ordered.toSorted()).toEqual(nodes.toSorted());
      for (const [from, to] of acyclic) if (nodes.includes(from) && nodes.includes(to)) expect(ordered.indexOf(from)).toBeLessThan(ordered.indexOf(to));
    }),
  );
});

it('begins a cycle with its first node by name, and goes on from there', () => {
  const cycle: [string, string][] = [
    ['c', 'b'],
    ['b', 'd'],
    ['d', 'c'],
    ['x', 'b'],
  ];

  expect(inOrder(new Set('bcdx'), cycle)).toEqual(['x', 'b', 'd', 'c']);
});

it('contains each node of any graph once', () => {
  fc.assert(
    fc.property(pairs, (given) => {
      expect(inOrder(new Set(names), given).toSorted()).toEqual(names);
    }),
  );
});
