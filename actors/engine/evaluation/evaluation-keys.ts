import { contentHash } from '#shared/config/content-hash.ts';
import type { Policy } from '#shared/contracts/documents/policy.ts';
import type { Routine } from '#shared/contracts/documents/routine.ts';
import type { Manifest } from '#shared/contracts/manifest/manifest.ts';
import { evaluateNode } from './evaluate-node.ts';
import { evaluatePolicy, type PolicyItem } from './evaluate-policy.ts';

/** Of how a routine's nodes are ordered and which of them are asked about; another number evaluates all routines anew. */
const ROUTINE_VERSION = 1;

/** By which model documents are evaluated. Part of the keys: another model may find something else. */
export function evaluationModel({ llms }: Pick<Manifest['agent_config'], 'llms'>): string {
  return llms.evaluation ?? llms.default;
}

/** The key of a routine's evaluation: its content, since a text may change under the same id. Null: it is not evaluated. */
export function routineKey(routine: Routine, model: string): string | null {
  if (routine.kind !== 'conversational' || !routine.enabled) return null;
  const { id, title, description, steps, transitions, initial_step } = routine;
  return contentHash({ of: ['routine', ROUTINE_VERSION, evaluateNode.template], model, id, title, description, steps, transitions, initial_step });
}

/** The key of a policy's evaluation; null: there is nothing to find out. */
export function policyKey(policy: Policy, model: string): string | null {
  const item = policyItem(policy);
  return item === null ? null : itemKey(evaluatePolicy.template, model, item);
}

/** Null: a policy that only observes, or always holds. */
export function policyItem({ condition, action, enabled }: Policy): PolicyItem | null {
  return enabled && condition !== null && action !== null ? { condition, action } : null;
}

/** The key of an answer: all that the model was shown. */
export function itemKey(template: string, model: string, item: object): string {
  return contentHash({ of: template, model, item });
}
