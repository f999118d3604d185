import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Policy } from '#shared/contracts/documents/policy.ts';
import { testPolicy } from '../policies/test-support/test-policy.ts';
import { testRoutine } from '../policies/test-support/test-routine.ts';
import { closure } from './edges.ts';
import { relationshipGraph } from './relationship-graph.ts';
import { resolve } from './resolve.ts';

const POLICIES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
const ROUTINES = ['q', 'r', 's'];
const ENTITIES = [...POLICIES.map((id) => `policy:${id}`), ...ROUTINES.map((id) => `routine:${id}`)];

const label = fc.constantFrom('x', 'y');
const entity = fc.constantFrom(...ENTITIES);
const reference = fc.oneof({ weight: 6, arbitrary: entity }, { weight: 1, arbitrary: label.map((name) => `tag:${name}`) });
const few = <Value>(arbitrary: fc.Arbitrary<Value>, maxLength: number) => fc.array(arbitrary, { maxLength });

/** Cycles and contradictions, which a start refuses, included. */
const bundles = fc.record({
  policies: fc.tuple(
    ...POLICIES.map((id) =>
      fc
        .record({
          labels: few(label, 1),
          priority: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.integer({ min: -1, max: 2 })),
          depends_on: few(reference, 1),
          routines: few(fc.constantFrom(...ROUTINES), 1),
        })
        .map((fields: Partial<Policy>) => testPolicy(id, fields)),
    ),
  ),
  routines: fc.tuple(
    ...ROUTINES.map((id) => fc.record({ labels: few(label, 1), priority: fc.integer({ min: 0, max: 1 }) }).map((fields) => testRoutine(id, fields))),
  ),
  priorities: few(
    fc.record({ higher: reference, over: fc.option(reference, { freq: 8 }) }).map((one) => ({ ...one, over_all_routines: one.over === null })),
    6,
  ),
  entailments: few(fc.record({ when: reference, also_apply: fc.array(reference, { minLength: 1, maxLength: 2 }) }), 4),
});

const turns = fc.tuple(bundles, fc.subarray(ENTITIES), fc.subarray(ENTITIES, { maxLength: 2 }), fc.subarray(ENTITIES));

describe('any relationships', () => {
  it('rule 20: at most three rounds, after which nothing is active that another displaces, that lacks something, or that was displaced', () => {
    property(({ graph, active, displaced, rounds, withheld }) => {
      expect(rounds).toBeLessThanOrEqual(3);
      for (const one of active) {
        for (const other of graph.over.get(one) ?? []) expect(active.has(other)).toBe(false);
        for (const { anyOf } of graph.needs.get(one) ?? []) expect(anyOf.some((other) => active.has(other))).toBe(true);
        expect(displaced.has(one) || withheld.has(one)).toBe(false);
      }
    });
  });

  it('rule 20: a result that took fewer rounds does not change when it is resolved again, but for entities that support each other in a circle', () => {
    property(({ graph, matched, withheld, active, displaced, resolutions, rounds }) => {
      // What brought a circle in may be displaced by now: then it is not found again.
      if (rounds === 3 || groundedIn(graph, matched, active).size < active.size || entailsItself(graph)) return;
      const again = resolve({ graph, matched, withheld, displaced });
      expect([...again.active].toSorted()).toEqual([...active].toSorted());
      expect(again.resolutions).toEqual(resolutions);
    });
  });

  it('rule 20: the order of what matched is irrelevant', () => {
    property(({ graph, matched, withheld, active, resolutions }) => {
      const reversed = resolve({ graph, matched: [...matched].toReversed(), withheld, displaced: new Map() });
      expect([...reversed.active].toSorted()).toEqual([...active].toSorted());
      expect(reversed.resolutions).toEqual(resolutions);
    });
  });

  it('rule 25: what is active matched, or is entailed by something that is active', () => {
    property(({ graph, matched, active }) => {
      for (const one of active) {
        expect(matched.includes(one) || [...active].some((other) => graph.entails.get(other)?.has(one) === true)).toBe(true);
      }
    });
  });

  it('rule 27: what a pass displaces is not active in a later one, whatever matches then', () => {
    property(({ graph, withheld, displaced, later }) => {
      const { active } = resolve({ graph, matched: later, withheld, displaced });
      for (const one of displaced.keys()) expect(active.has(one)).toBe(false);
    });
  });

  it('rule 28: each entity that matched or was displaced has one resolution, and it says whether it is active', () => {
    property(({ matched, withheld, active, displaced, resolutions }) => {
      const entities = resolutions.map((one) => one.entity);
      expect(new Set(entities).size).toBe(entities.length);
      for (const one of [...matched.filter((name) => !withheld.has(name)), ...active, ...displaced.keys()]) expect(entities).toContain(one);
      for (const one of resolutions) expect(active.has(one.entity)).toBe(one.outcome === 'none' || one.outcome === 'entailed');
    });
  });
});

type Resolved = ReturnType<typeof resolve> & { graph: ReturnType<typeof relationshipGraph>; matched: string[]; withheld: ReadonlySet<string>; later: string[] };

/** Whether entailments form a circle. */
function entailsItself({ entails }: Resolved['graph']): boolean {
  const below = (entity: string) => entails.get(entity) ?? [];
  return [...entails.keys()].some((entity) => closure([...below(entity)], { has: () => true }, below).has(entity));
}

/** Those of the active entities whose support begins with what matched and needs nothing. */
function groundedIn(graph: Resolved['graph'], matched: readonly string[], active: ReadonlySet<string>): Set<string> {
  const grounded = new Set<string>();
  for (let sizeBefore = -1; sizeBefore !== grounded.size; ) {
    sizeBefore = grounded.size;
    for (const one of active) {
      const isBrought = matched.includes(one) || [...grounded].some((other) => graph.entails.get(other)?.has(one) === true);
      const needs = graph.needs.get(one) ?? [];
      if (isBrought && needs.every(({ anyOf }) => anyOf.some((other) => grounded.has(other)))) grounded.add(one);
    }
  }
  return grounded;
}

function property(check: (resolved: Resolved) => void): void {
  fc.assert(
    fc.property(turns, ([{ policies, routines, priorities, entailments }, matched, hidden, later]) => {
      const graph = relationshipGraph({ policies, routines }, { priorities, entailments });
      const withheld = new Set(hidden);
      check({ ...resolve({ graph, matched, withheld, displaced: new Map() }), graph, matched, withheld, later });
    }),
    { numRuns: 1_000 },
  );
}
