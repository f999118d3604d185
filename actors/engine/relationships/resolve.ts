import { closure, type Edges } from './edges.ts';
import type { RelationshipGraph } from './relationship-graph.ts';
import type { Resolution } from './resolution.ts';
import { Round } from './round.ts';

const MAX_ROUNDS = 3;

interface ResolutionInput {
  graph: RelationshipGraph;
  /** Policies that apply and routines that are active, before relationships. Others than those of the graph are ignored. */
  matched: Iterable<string>;
  /** Inactive whatever entails it: what a clarification stands for. */
  withheld: ReadonlySet<string>;
  /** Of earlier resolutions of the turn: a displaced entity stays so. */
  displaced: ReadonlyMap<string, Resolution>;
}

interface Resolved {
  active: ReadonlySet<string>;
  displaced: ReadonlyMap<string, Resolution>;
  /** One for each entity that was matched, entailed or displaced; sorted by entity. */
  resolutions: Resolution[];
  /** That it took, up to 3. */
  rounds: number;
}

/** Which policies and routines are active once relationships are applied (docs/engine.md, rules 20 to 28). The order of `matched` is irrelevant. */
export function resolve({ graph, matched: given, withheld, displaced: before }: ResolutionInput): Resolved {
  const matched = new Set([...given].filter((entity) => graph.numbers.has(entity) && !withheld.has(entity)));
  const displaced = new Map(before);
  const unmet = new Map<string, Resolution>();
  const round = new Round(graph, matched, displaced, unmet);
  let entailed: ReadonlySet<string> = new Set();
  let active = new Set<string>();
  let rounds = 0;
  let isStable = false;
  while (!isStable && rounds < MAX_ROUNDS) {
    rounds += 1;
    active = new Set([...matched, ...entailed].filter((entity) => !displaced.has(entity)));
    const displacedBefore = displaced.size;
    round.dropUnmet(active);
    round.displace(active);
    round.silence(active);
    const found = entailedBy(active, { has: (entity) => !displaced.has(entity) && !withheld.has(entity) }, graph.entails);
    isStable = displaced.size === displacedBefore && found.size === entailed.size && [...found].every((entity) => entailed.has(entity));
    entailed = found;
  }
  // What the last round displaced may be what others need. An entailment that is new in it has no effect.
  round.dropUnmet(active);
  return { active, displaced, resolutions: resolutionsOf({ graph, matched, active, displaced, unmet }), rounds };
}

/** What active entities entail, directly and through each other. */
function entailedBy(active: ReadonlySet<string>, within: { has(entity: string): boolean }, entails: Edges): Set<string> {
  const reached = closure(active, within, (entity) => entails.get(entity) ?? []);
  const targets = [...reached].flatMap((entity) => [...(entails.get(entity) ?? [])]);
  return new Set(targets.filter((entity) => reached.has(entity)));
}

interface Found {
  graph: RelationshipGraph;
  matched: ReadonlySet<string>;
  active: ReadonlySet<string>;
  displaced: ReadonlyMap<string, Resolution>;
  unmet: ReadonlyMap<string, Resolution>;
}

function resolutionsOf({ graph, matched, active, displaced, unmet }: Found): Resolution[] {
  return [...new Set([...active, ...displaced.keys(), ...unmet.keys()])].toSorted().flatMap((entity): Resolution[] => {
    if (active.has(entity) && matched.has(entity)) return [{ entity, outcome: 'none', relationship: null, counterparts: [] }];
    if (active.has(entity)) {
      const counterparts = [...(graph.sources.get(entity) ?? [])].filter((source) => active.has(source)).toSorted();
      return [{ entity, outcome: 'entailed', relationship: 'entailment', counterparts }];
    }
    const inactive = displaced.get(entity) ?? unmet.get(entity);
    return inactive === undefined ? [] : [inactive];
  });
}
