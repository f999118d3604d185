import type { BundleBody } from '#shared/config/bundle-body.ts';
import { agentPolicies } from './agent-policies.ts';
import { scopesOf } from './policies/candidates.ts';
import { relationshipGraph } from './relationships/relationship-graph.ts';
import { resolve } from './relationships/resolve.ts';

/** A policy that is in a run's prompt. */
export interface RunPolicy {
  /** Null: it holds in any case. */
  condition: string | null;
  action: string;
}

/** By bundle and routine: relationships are the same for each run of it. */
const known = new WeakMap<BundleBody, Map<string, readonly RunPolicy[]>>();

/**
 * The policies of a run (rule 132), in the manifest's order: those without a condition that belong to no routine, and those of its own routine, whose conditions the
 * run's model judges by itself.
 */
export function runPoliciesOf(body: BundleBody, routineId: string): readonly RunPolicy[] {
  const byRoutine = known.get(body) ?? new Map<string, readonly RunPolicy[]>();
  known.set(body, byRoutine);
  const policies = byRoutine.get(routineId) ?? readPolicies(body, routineId);
  byRoutine.set(routineId, policies);
  return policies;
}

function readPolicies(body: BundleBody, routineId: string): RunPolicy[] {
  const all = agentPolicies(body);
  const scopes = scopesOf({ policies: all, routines: body.documents.routines });
  const isOwn = (id: string) => scopes.get(id)?.includes(routineId) === true;
  // A disambiguation asks the customer. The run's routine is active, so its policies need none.
  const policies = all
    .filter(({ id, disambiguates }) => disambiguates.length === 0 && (!scopes.has(id) || isOwn(id)))
    .map((policy) => ({ ...policy, routines: [] }));
  const graph = relationshipGraph({ policies, routines: [] }, body.manifest.agent_config.context.relationships);
  const unconditional = policies.flatMap(({ id, condition }) => (condition === null ? [`policy:${id}`] : []));
  const activeWith = (...more: string[]) => resolve({ graph, matched: [...unconditional, ...more], withheld: new Set(), displaced: new Map() }).active;
  const active = activeWith();
  return policies.flatMap(({ id, condition, action }): RunPolicy[] => {
    if (action === null) return [];
    const entity = `policy:${id}`;
    if (active.has(entity)) return [{ condition: null, action }];
    return condition !== null && isOwn(id) && activeWith(entity).has(entity) ? [{ condition, action }] : [];
  });
}

/** Empty without policies. */
export function runPoliciesText(policies: readonly RunPolicy[]): string {
  if (policies.length === 0) return '';
  const lines = policies.map(({ condition, action }) => `- ${condition === null ? 'Always: ' : `When ${condition}, then `}${action}`);
  return `# Policies\nFollow each of these. Leave one out only if you lack what it needs, or if a more specific one takes its place.\n${lines.join('\n')}`;
}
