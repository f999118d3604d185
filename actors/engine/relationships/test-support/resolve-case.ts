import type { Policy } from '#shared/contracts/documents/policy.ts';
import { testPolicy } from '../../policies/test-support/test-policy.ts';
import { testRoutine } from '../../policies/test-support/test-routine.ts';
import { relationshipGraph } from '../relationship-graph.ts';
import type { Resolution } from '../resolution.ts';
import { resolve } from '../resolve.ts';

export interface Case {
  title: string;
  policies?: Record<string, Partial<Policy>>;
  routines?: Record<string, { priority?: number; labels?: string[]; policies?: string[] }>;
  /** `a > b`: a over b; `a > *`: over all routines. */
  priorities?: string[];
  /** `a + b c`: when a, also apply b and c. */
  entailments?: string[];
  matched: string;
  active: string;
  /** Entity, outcome, relationship, counterparts. */
  because?: [string, Resolution['outcome'], Resolution['relationship'], ...string[]][];
}

/** Of a row of a table: what the resolution has to contain. */
export function expectedOf({ active, because = [] }: Case): { active: string[]; resolutions: Resolution[] } {
  const resolutions = because.map(([entity, outcome, relationship, ...counterparts]) => ({
    entity: full(entity),
    outcome,
    relationship,
    counterparts: counterparts.map(full),
  }));
  return { active: words(active), resolutions };
}

type Given = Omit<Case, 'title' | 'active'> & { displaced?: ReadonlyMap<string, Resolution>; withheld?: string };

export function resolved({ policies = {}, routines = {}, priorities = [], entailments = [], matched, displaced = new Map(), withheld = '' }: Given) {
  const documents = {
    policies: Object.entries(policies).map(([id, fields]) => testPolicy(id, fields)),
    routines: Object.entries(routines).map(([id, fields]) => testRoutine(id, fields)),
  };
  const graph = relationshipGraph(documents, {
    priorities: priorities.map((one) => {
      const [higher = '', over = ''] = one.split(' > ').map(full);
      return over === '*' ? { higher, over: null, over_all_routines: true } : { higher, over, over_all_routines: false };
    }),
    entailments: entailments.map((one) => {
      const [when = '', others = ''] = one.split(' + ');
      return { when: full(when), also_apply: words(others) };
    }),
  });
  return resolve({ graph, matched: words(matched), withheld: new Set(words(withheld)), displaced });
}

function words(text: string): string[] {
  return text === '' ? [] : text.split(' ').map(full);
}

/** `p:a` is short for `policy:a`. */
function full(text: string): string {
  return text.replaceAll(/\bp:/g, 'policy:').replaceAll(/\br:/g, 'routine:');
}
