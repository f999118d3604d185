import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { Policy } from '#shared/contracts/documents/policy.ts';
import type { Routine } from '#shared/contracts/documents/routine.ts';
import { ownValue } from '#shared/own-value.ts';
import { withheldOf } from '../moderation/withheld.ts';
import type { RoutinePaths } from '../routines/routine-machine.ts';
import { rankByWords } from './rank-by-words.ts';

/** What is judged: a policy, or a condition of a routine as an observation. */
export type Candidate = Pick<Policy, 'id' | 'condition' | 'action' | 'criticality' | 'track' | 'continuous' | 'disambiguates'>;

/** Of a bundle; disabled ones are ignored. */
export interface MatchDocuments {
  policies: readonly Policy[];
  routines: readonly Routine[];
}

/** Messages whose words select a routine. */
const MAX_MESSAGES = 10;

/** The routine that shares most words with the last of these messages; null: none shares any. */
export function likeliestRoutine(documents: Pick<MatchDocuments, 'routines'>, events: readonly ConversationEvent[]): string | null {
  return rankRoutines(recentText(events), conversationalOf(documents))[0]?.id ?? null;
}

/**
 * Pass one: each policy that belongs to no routine, the conditions of routines that are not being followed, and the policies of routines with a path in
 * this session, else of the likeliest one.
 * @param paths without nodes that the routines' graphs do not have
 */
export function firstCandidates(documents: MatchDocuments, paths: RoutinePaths, likeliest: string | null): Candidate[] {
  const routines = conversationalOf(documents);
  const scopes = scopesOf(documents);
  const followed = followedOf(routines, paths);
  const prepared = new Set<string | null>(followed.length > 0 ? followed : [likeliest]);
  const policies = enabledOf(documents).filter(({ id }) => {
    const scope = scopes.get(id);
    return scope === undefined || scope.some((routineId) => prepared.has(routineId));
  });
  const conditions = routines.filter(({ id }) => (ownValue(paths, id)?.at(-1) ?? null) === null).flatMap(conditionsOf);
  return [...policies, ...conditions];
}

/** Ids of the routines with a path in this session. */
export function followedOf(routines: readonly Routine[], paths: RoutinePaths): string[] {
  return routines.filter(({ id }) => ownValue(paths, id)?.some((node) => node !== null)).map(({ id }) => id);
}

/**
 * Pass two, if a routine is active that pass one did not expect: the policies of active routines that were not judged.
 * @param judged ids of policies
 */
export function laterCandidates(documents: MatchDocuments, activeRoutineIds: ReadonlySet<string>, judged: ReadonlySet<string>): Candidate[] {
  const scopes = scopesOf(documents);
  return enabledOf(documents).filter(({ id }) => !judged.has(id) && scopes.get(id)?.some((routineId) => activeRoutineIds.has(routineId)) === true);
}

/**
 * The pass after a tool that forces one: what does not apply yet may do so now, so each policy in scope and each routine that is not active is judged again.
 * @param applying ids of policies that apply already
 */
export function repeatedCandidates(documents: MatchDocuments, activeRoutineIds: ReadonlySet<string>, applying: ReadonlySet<string>): Candidate[] {
  const scopes = scopesOf(documents);
  const policies = enabledOf(documents).filter(({ id }) => {
    const scope = scopes.get(id);
    return !applying.has(id) && (scope === undefined || scope.some((routineId) => activeRoutineIds.has(routineId)));
  });
  const conditions = conversationalOf(documents)
    .filter(({ id }) => !activeRoutineIds.has(id))
    .flatMap(conditionsOf);
  return [...policies, ...conditions];
}

/** By policy: the conversational routines that it belongs to. Policies that belong to none, nor to another kind, are absent. */
export function scopesOf({ policies, routines }: MatchDocuments): ReadonlyMap<string, readonly string[]> {
  const scopes = new Map<string, string[]>();
  const add = (policyId: string, routineId: string) => {
    const scope = scopes.get(policyId);
    if (scope === undefined) scopes.set(policyId, [routineId]);
    else if (!scope.includes(routineId)) scope.push(routineId);
  };
  for (const { id, routines: named } of policies) for (const routineId of named) add(id, routineId);
  for (const { id, policies: named } of routines) for (const policyId of named) add(policyId, id);
  return scopes;
}

/** No policy's id has a colon. */
function conditionsOf({ id, conditions }: Routine): Candidate[] {
  return conditions.map((condition, index) => ({
    id: `routine:${id}:${index}`,
    condition,
    action: null,
    criticality: 'medium',
    track: false,
    continuous: null,
    disambiguates: [],
  }));
}

/** The routine and the condition's place that a candidate's id names; null for a policy. */
export function conditionIn(candidateId: string): { routineId: string; index: number } | null {
  const [kind, routineId, index] = candidateId.split(':');
  return kind !== 'routine' || routineId === undefined || index === undefined ? null : { routineId, index: Number(index) };
}

export function enabledOf({ policies }: Pick<MatchDocuments, 'policies'>): readonly Policy[] {
  return policies.filter(({ enabled }) => enabled);
}

export function conversationalOf({ routines }: Pick<MatchDocuments, 'routines'>): readonly Routine[] {
  return routines.filter(({ enabled, kind }) => enabled && kind === 'conversational');
}

/** What a routine is known by when a message is compared with it. */
export function routineText({ title, description, conditions, steps }: Routine): string {
  const inSteps = steps.map((step) => `${step.description ?? ''} ${step.kind === 'chat' ? step.chat_state : ''}`);
  return [title, description, ...conditions, ...inSteps].join('\n');
}

const rankRoutines = rankByWords(routineText);

/** The words of the last ten messages, without those that are withheld from models. */
export function recentText(history: readonly ConversationEvent[]): string {
  const texts = history.flatMap((event) =>
    (event.kind === 'user_message' || event.kind === 'assistant_message') && withheldOf(event.metadata) === null ? [event.text] : [],
  );
  return texts.slice(-MAX_MESSAGES).join('\n');
}
