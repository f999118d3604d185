import { conversationalOf, enabledOf, type MatchDocuments, scopesOf } from '../policies/candidates.ts';
import { expander } from '../policies/expand-reference.ts';
import { type Edges, edge, inverse } from './edges.ts';

/** As `context.relationships` of the manifest has them. */
interface Relationships {
  priorities: readonly { higher: string; over: string | null; over_all_routines: boolean }[];
  entailments: readonly { when: string; also_apply: readonly string[] }[];
}

/** What has to be active for an entity to be: at least one of `anyOf`. */
export interface Need {
  relationship: 'dependency' | 'scope';
  /** As it is written; of a scope the routines, with commas. */
  reference: string;
  anyOf: readonly string[];
}

/** The relationships of a bundle. Entities are `policy:<id>` and `routine:<id>`; disabled ones have no part in it. */
export interface RelationshipGraph {
  /** From what displaces to what is displaced. */
  over: Edges;
  /** The inverse of `over`. */
  displacers: Edges;
  /** From what entails to what is entailed. */
  entails: Edges;
  /** The inverse of `entails`. */
  sources: Edges;
  needs: ReadonlyMap<string, readonly Need[]>;
  /** Of every entity. */
  numbers: ReadonlyMap<string, number>;
}

/** The same for the same bundle: callers may keep it. */
export function relationshipGraph(documents: MatchDocuments, relationships: Relationships | null): RelationshipGraph {
  const policies = enabledOf(documents);
  const routines = conversationalOf(documents);
  const expand = expander({ policies, routines });
  const scopes = new Map([...scopesOf(documents)].map(([id, ids]) => [`policy:${id}`, ids.map((routineId) => `routine:${routineId}`)]));
  const over = new Map<string, Set<string>>();
  const entails = new Map<string, Set<string>>();
  for (const { higher, over: lower } of relationships?.priorities ?? []) {
    const lowers = lower === null ? routines.map(({ id }) => `routine:${id}`) : expand(lower);
    for (const one of expand(higher)) {
      // A group with the entity itself, or with a routine that it belongs to, means the rest of the group.
      for (const other of lowers) if (one !== other && scopes.get(one)?.includes(other) !== true) edge(over, one, other);
    }
  }
  for (const { when, also_apply: implied } of relationships?.entailments ?? []) {
    const others = implied.flatMap(expand);
    for (const one of expand(when)) for (const other of others) if (one !== other) edge(entails, one, other);
  }
  const needs = new Map<string, Need[]>();
  for (const policy of policies) {
    const self = `policy:${policy.id}`;
    const scope = scopes.get(self);
    const found: Need[] = scope === undefined ? [] : [{ relationship: 'scope', reference: scope.join(', '), anyOf: scope }];
    for (const reference of policy.depends_on) {
      found.push({ relationship: 'dependency', reference, anyOf: expand(reference).filter((member) => member !== self) });
    }
    if (found.length > 0) needs.set(self, found);
  }
  const numbers = new Map([
    ...policies.map(({ id, priority }): [string, number] => [`policy:${id}`, priority]),
    ...routines.map(({ id, priority }): [string, number] => [`routine:${id}`, priority]),
  ]);
  return { over, displacers: inverse(over), entails, sources: inverse(entails), needs, numbers };
}
