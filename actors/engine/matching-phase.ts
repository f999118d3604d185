import type { EngineDocuments } from './engine-documents.ts';
import { type Candidate, firstCandidates, laterCandidates, repeatedCandidates } from './policies/candidates.ts';
import { type Matching, matchedPolicies, type StagedMatch } from './policies/matched-policies.ts';
import { planMatching } from './policies/plan-matching.ts';
import type { Resolution } from './relationships/resolution.ts';
import { resolve } from './relationships/resolve.ts';
import { nothingSince, type RoutinePass, type SincePass } from './routines/plan-routine.ts';
import { planRoutines, type RoutinesPlan } from './routines/plan-routines.ts';
import { callKey, type RoutineAnswer } from './routines/routine-calls.ts';
import { knownPaths, type RoutinePaths } from './routines/routine-machine.ts';
import { type CallRequest, requestOf } from './turn-calls.ts';
import type { RowOf, TurnRow } from './turn-row.ts';

interface PhaseInput {
  documents: EngineDocuments;
  began: RowOf<'began'>;
  /** Later ones. */
  rows: readonly TurnRow[];
  /** One entry for each pass after the first. */
  since: readonly SincePass[];
}

type Phase = { type: 'ask'; calls: CallRequest[] } | Matched;

export interface Matched {
  type: 'matched';
  matching: Matching;
  /** Policies in force, after relationships, with the reason where there is one. */
  policies: Map<string, string | null>;
  routines: RoutinesPlan;
  resolutions: Resolution[];
}

/** Which policies and steps count, after each of the turn's passes: what is still to be asked, or what was found. */
export function matchingPhase({ documents, began, rows, since }: PhaseInput): Phase {
  const passes = new Passes(documents, began, rows);
  let found: Phase = { type: 'ask', calls: [] };
  for (const each of [nothingSince, ...since]) {
    found = passes.next(each);
    if (found.type === 'ask') return found;
  }
  return found;
}

class Passes {
  readonly #documents: EngineDocuments;
  readonly #state: RowOf<'began'>['state'];
  readonly #paths: RoutinePaths;
  readonly #likeliest: string | null;
  readonly #matches: ReadonlyMap<string, RowOf<'match'>>;
  readonly #answers: ReadonlyMap<string, RoutineAnswer>;
  readonly #routinePasses: RoutinePass[] = [];
  readonly #judged = new Set<string>();
  readonly #certain: string[] = [];
  readonly #staged: StagedMatch[] = [];
  #numberOfPasses = 0;
  #displaced: ReadonlyMap<string, Resolution> = new Map();
  #policies: ReadonlyMap<string, string | null> = new Map();
  #active: ReadonlySet<string> = new Set();

  constructor(documents: EngineDocuments, { state, likeliest }: RowOf<'began'>, rows: readonly TurnRow[]) {
    this.#documents = documents;
    this.#state = state;
    this.#paths = knownPaths(documents.routineModels, state.paths);
    const byVectors = rows.findLast((row) => row.kind === 'likeness')?.likeliest;
    this.#likeliest = byVectors === undefined ? (likeliest ?? null) : byVectors;
    this.#matches = new Map(rows.flatMap((row) => (row.kind === 'match' ? [[row.key, row] as const] : [])));
    this.#answers = new Map(rows.flatMap((row) => (row.kind === 'routine' ? [[callKey(row.reference), row.answer] as const] : [])));
  }

  next(since: SincePass): Phase {
    const documents = this.#documents;
    const isFirst = this.#routinePasses.length === 0;
    const candidates = isFirst
      ? firstCandidates(documents, this.#paths, this.#likeliest)
      : repeatedCandidates(documents, this.#active, new Set(this.#policies.keys()));
    const missing = this.#match(candidates);
    const activated = missing.length > 0 ? new Set<string>() : new Set(this.#matching().activatedRoutineIds);
    this.#routinePasses.push({ activated, ...since });
    const calls = [...missing, ...this.#routineCalls()];
    if (calls.length > 0) return { type: 'ask', calls };
    const later = this.#match(laterCandidates(documents, this.#plan().active, this.#judged));
    if (later.length > 0) return { type: 'ask', calls: later };
    return this.#resolved(activated);
  }

  /** After relationships. An entailed routine is entered like one whose condition holds, which may take further calls. */
  #resolved(activated: Set<string>): Phase {
    const matching = this.#matching();
    const plan = this.#plan();
    const matched = [...[...matching.policies.keys()].map((id) => `policy:${id}`), ...[...plan.active].map((id) => `routine:${id}`)];
    const { active, displaced, resolutions } = resolve({
      graph: this.#documents.relationships,
      matched,
      withheld: matching.withheld,
      displaced: this.#displaced,
    });
    this.#displaced = displaced;
    const routineIds = [...active].flatMap((entity) => (entity.startsWith('routine:') ? [entity.slice('routine:'.length)] : []));
    for (const id of routineIds) activated.add(id);
    const calls = this.#routineCalls();
    if (calls.length > 0) return { type: 'ask', calls };
    const sources = new Map(resolutions.flatMap(({ entity, outcome, counterparts }) => (outcome === 'entailed' ? [[entity, counterparts] as const] : [])));
    const reasonOf = (id: string) => matching.policies.get(id) ?? sources.get(`policy:${id}`)?.map((source) => `It goes along with ${source}.`)[0] ?? null;
    const policies = this.#documents.policies.flatMap(({ id }) => (active.has(`policy:${id}`) ? [[id, reasonOf(id)] as const] : []));
    this.#policies = new Map(policies);
    const routines = this.#plan(new Set(routineIds));
    this.#active = routines.active;
    return { type: 'matched', matching, policies: new Map(policies), routines, resolutions };
  }

  #matching(): Matching {
    return matchedPolicies(this.#documents, this.#certain, this.#staged);
  }

  /** The calls of a pass that have no answer yet. */
  #match(candidates: readonly Candidate[]): CallRequest[] {
    if (candidates.length === 0) return [];
    this.#numberOfPasses += 1;
    const pass = this.#numberOfPasses;
    const { batchSize, policyEvaluations: evaluations } = this.#documents;
    const plan = planMatching({ candidates, evaluations, appliedPolicyIds: new Set(this.#state.appliedPolicyIds), batchSize });
    this.#certain.push(...plan.certain);
    for (const { id } of candidates) this.#judged.add(id);
    return plan.batches.flatMap((batch) => {
      const key = `${pass}/${batch.id}`;
      const row = this.#matches.get(key);
      if (row === undefined) return [requestOf('match', { key, reference: batch }, this.#documents)];
      const { answer, model, ms } = row;
      this.#staged.push({ pass, batch: row.reference, answer, model, ms });
      return [];
    });
  }

  #routineCalls(): CallRequest[] {
    return this.#plan().calls.map((call) => requestOf('routine', { key: callKey(call), reference: call }, this.#documents));
  }

  /** @param inForce of active routines; absent: relationships are not considered yet */
  #plan(inForce?: ReadonlySet<string>): RoutinesPlan {
    const { routineModels: routines } = this.#documents;
    const isDisplaced = (id: string) => this.#displaced.has(`routine:${id}`) || (inForce !== undefined && !inForce.has(id));
    const displaced = new Set(routines.flatMap(({ routine: { id } }) => (isDisplaced(id) ? [id] : [])));
    return planRoutines({ routines, paths: this.#paths, passes: this.#routinePasses, displaced, answers: this.#answers });
  }
}
