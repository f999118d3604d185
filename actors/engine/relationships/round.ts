import { closure, inOrder } from './edges.ts';
import type { Need, RelationshipGraph } from './relationship-graph.ts';
import type { Resolution } from './resolution.ts';

/** Of what silences an entity by its number; the first by name. */
const MAX_COUNTERPARTS = 10;

/** The steps of a round of `resolve`. Each removes entities from `active`, and records why. */
export class Round {
  readonly #graph: RelationshipGraph;
  readonly #matched: ReadonlySet<string>;
  readonly #displaced: Map<string, Resolution>;
  readonly #unmet: Map<string, Resolution>;

  constructor(graph: RelationshipGraph, matched: ReadonlySet<string>, displaced: Map<string, Resolution>, unmet: Map<string, Resolution>) {
    this.#graph = graph;
    this.#matched = matched;
    this.#displaced = displaced;
    this.#unmet = unmet;
  }

  /** Removes what lacks a dependency or its routine, until nothing else does. */
  dropUnmet(active: Set<string>): void {
    for (let sizeBefore = -1; sizeBefore !== active.size; ) {
      sizeBefore = active.size;
      this.#dropUnsupported(active);
      for (const entity of [...active].toSorted()) this.#dropIfUnmet(entity, active);
    }
  }

  /** Removes what an active entity displaces. What is removed displaces nothing, and neither does what needs it. */
  displace(active: Set<string>): void {
    for (const entity of inOrder(active, this.#pairsOf(active))) {
      if (this.#dropIfUnsupported(entity, active) || this.#dropIfUnmet(entity, active)) continue;
      const counterparts = [...(this.#graph.displacers.get(entity) ?? [])].filter((higher) => active.has(higher)).toSorted();
      if (counterparts.length > 0) this.#remove(entity, active, { relationship: 'priority', counterparts });
    }
    this.#dropUnsupported(active);
  }

  /** Removes what was matched below the highest number, except what those with that number entail or need. */
  silence(active: Set<string>): void {
    const numbers = [...active].filter((entity) => this.#matched.has(entity)).map((entity) => ({ entity, number: this.#numberOf(entity, active) }));
    const highest = numbers.reduce((most, { number }) => Math.max(most, number), Number.NEGATIVE_INFINITY);
    const top = numbers.filter(({ number }) => number === highest).map(({ entity }) => entity);
    const kept = closure(top, active, (entity) => [...(this.#graph.entails.get(entity) ?? []), ...this.#needsOf(entity).flatMap(({ anyOf }) => anyOf)]);
    const counterparts = top.toSorted().slice(0, MAX_COUNTERPARTS);
    for (const { entity } of numbers) if (!kept.has(entity)) this.#remove(entity, active, { relationship: 'numeric_priority', counterparts });
    this.#dropUnsupported(active);
  }

  #remove(entity: string, active: Set<string>, { relationship, counterparts }: Pick<Resolution, 'relationship' | 'counterparts'>): void {
    active.delete(entity);
    this.#displaced.set(entity, { entity, outcome: 'deprioritized', relationship, counterparts });
  }

  /** @returns whether it is inactive now */
  #dropIfUnmet(entity: string, active: Set<string>): boolean {
    const missing = this.#needsOf(entity).filter(({ anyOf }) => !anyOf.some((other) => active.has(other)));
    const [first] = missing;
    if (first === undefined) return !active.has(entity);
    active.delete(entity);
    const { relationship } = first;
    this.#unmet.set(entity, { entity, outcome: 'unmet_dependency', relationship, counterparts: missing.map(({ reference }) => reference) });
    return true;
  }

  /** @returns whether it is inactive now */
  #dropIfUnsupported(entity: string, active: Set<string>): boolean {
    const isSupported = this.#matched.has(entity) || [...(this.#graph.sources.get(entity) ?? [])].some((source) => active.has(source));
    if (!isSupported) active.delete(entity);
    return !isSupported;
  }

  /** Entities that were not matched are active by what entails them, and not by each other. */
  #dropUnsupported(active: Set<string>): void {
    const roots = [...active].filter((entity) => this.#matched.has(entity));
    const supported = closure(roots, active, (entity) => this.#graph.entails.get(entity) ?? []);
    for (const entity of [...active]) if (!supported.has(entity)) active.delete(entity);
  }

  /** A policy counts no less than an active routine that it belongs to. */
  #numberOf(entity: string, active: ReadonlySet<string>): number {
    const scope = this.#needsOf(entity).flatMap(({ relationship, anyOf }) => (relationship === 'scope' ? anyOf : []));
    const counting = [entity, ...scope.filter((routine) => active.has(routine))];
    return counting.reduce((most, one) => Math.max(most, this.#graph.numbers.get(one) ?? 0), Number.NEGATIVE_INFINITY);
  }

  #needsOf(entity: string): readonly Need[] {
    return this.#graph.needs.get(entity) ?? [];
  }

  /** What has to be decided before what. */
  *#pairsOf(active: ReadonlySet<string>): Generator<[string, string]> {
    for (const entity of active) {
      for (const edges of [this.#graph.over, this.#graph.entails]) for (const other of edges.get(entity) ?? []) yield [entity, other];
      for (const { anyOf } of this.#needsOf(entity)) for (const other of anyOf) yield [other, entity];
    }
  }
}
