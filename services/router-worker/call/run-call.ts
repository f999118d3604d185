import { type Failure, failureOf } from '#shared/errors/switchyard-error.ts';
import { type Answer, hasContent } from '#shared/surfaces/answer.ts';
import { type PreviousError, previousErrorOf } from '#shared/surfaces/error-body.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { CallSignal } from '../call-signal.ts';
import type { PartTransform } from '../pipeline/stage.ts';
import { type Attempt, type Attempting, beginAttempt, type CallObserver, endAttempt, type RunDeps, runAttempt } from './attempt.ts';
import type { Candidate } from './candidates.ts';
import { failureReason } from './failure-reason.ts';
import { type CandidateFailure, isRepeated, remainingAfter, remainingForText } from './fall-back.ts';
import { type Hedge, hedgeOf, runRace } from './hedge.ts';

/** Over all candidates; bounds the caller's wait for an error. */
const MAX_ATTEMPTS = 8;

/** Candidates, best first, and what each attempt's parts pass through. */
export interface MoreToTry {
  candidates: readonly Candidate[];
  partTransforms: readonly PartTransform[];
}

/** What is tried. */
export interface CallPlan extends MoreToTry {
  /**
   * What is tried with the text of the request's files once all candidates have failed without content, and attempts are left. Called once, with a function that
   * leaves out what would fail alike. Absent, or null: nothing. Never rejects.
   */
  more?: (remainingOf: (candidates: readonly Candidate[]) => readonly Candidate[]) => Promise<MoreToTry | null>;
  /** With the ids of the call; absent: that of the worker. */
  log?: Log;
}

export type CallOutcome =
  | { type: 'completed'; candidate: Candidate; answer: Answer }
  /** `partial` is null when no content was published. */
  | { type: 'failed'; error: unknown; candidate: Candidate | null; partial: Answer | null; previousErrors: readonly PreviousError[] }
  /** The signal's reason is the error. */
  | { type: 'aborted'; candidate: Candidate | null; partial: Answer | null; previousErrors: readonly PreviousError[] };

/**
 * Tries the candidates in order. The first content part is the commit point: a failure before it falls back to the next candidate, a failure after it ends the
 * call, since published content can't be withdrawn.
 */
export async function runCall(plan: CallPlan, observer: CallObserver, signal: CallSignal, deps: RunDeps): Promise<CallOutcome> {
  const { candidates, partTransforms, log = deps.log } = plan;
  let { more } = plan;
  const failures: CandidateFailure[] = [];
  const previousErrors: PreviousError[] = [];
  let attempting: Attempting = { observer, partTransforms, commits: () => true };
  let outcome: CallOutcome = { type: 'aborted', candidate: null, partial: null, previousErrors };
  let queue: readonly Candidate[] = candidates;
  let hasRepeated = false;
  let hasHedged = false;
  for (let made = 0; made < MAX_ATTEMPTS; ) {
    const [candidate] = queue;
    if (candidate === undefined) {
      if (more === undefined) break;
      const next: MoreToTry | null = await more((all) => remainingForText(failures, all));
      more = undefined;
      if (signal.aborted) return { type: 'aborted', candidate: outcome.candidate, partial: null, previousErrors };
      if (next === null) break;
      queue = next.candidates;
      attempting = { ...attempting, partTransforms: next.partTransforms };
      continue;
    }
    const rest = queue.slice(1);
    if (signal.aborted) return { type: 'aborted', candidate, partial: null, previousErrors };
    const hedge: Hedge | null = hasHedged ? null : hedgeOf(candidate, rest, deps.health);
    const first = beginAttempt(candidate, observer, deps);
    const attempts: readonly Attempt[] = hedge === null ? [first] : await runRace(first, hedge, attempting, signal, deps);
    if (hedge === null) await runAttempt(first, attempting, signal, deps);
    hasHedged ||= attempts.length > 1;
    const mayRepeat: boolean = !hasRepeated && attempts.length === 1 && first.tried.error !== null && isRepeated(first.tried.error);
    for (const attempt of attempts) {
      endAttempt(attempt, signal.aborted || mayRepeat);
      observer.attempted?.(attempt.tried);
    }
    const { tried: last } = attempts.at(-1) ?? first;
    if (last.error === null) return { type: 'completed', candidate: last.candidate, answer: last.answer };
    const partial = hasContent(last.answer) ? last.answer : null;
    if (signal.aborted) return { type: 'aborted', candidate: last.candidate, partial, previousErrors };
    if (!mayRepeat) queue = attempts.length === 1 ? rest : rest.filter((one) => !attempts.some(({ tried }) => tried.candidate === one));
    for (const { tried } of attempts) {
      made += 1;
      if (tried.outrun) continue;
      const failure = report(tried.error, tried.candidate, made, log);
      outcome = { type: 'failed', error: tried.error, candidate: tried.candidate, partial, previousErrors: [...previousErrors] };
      if (partial === null) previousErrors.push(previousErrorOf(tried.error, tried.candidate.provider.name, tried.candidate.model.id));
      if (mayRepeat) continue;
      failures.push({ code: failure.code, candidate: tried.candidate });
      queue = remainingAfter(failure.code, tried.candidate, queue);
    }
    if (partial !== null) return outcome;
    hasRepeated ||= mayRepeat;
  }
  return outcome;
}

/** The upstream's text may quote a customer and is not logged. */
function report(error: unknown, { model, provider }: Candidate, attempt: number, log: Log): Failure {
  const failure = failureOf(error);
  const { code } = failure;
  const fields = { code, model: model.id, provider: provider.slug, attempt, ...failureReason(failure) };
  if (code === 'internal') log.error({ ...fields, err: error }, 'a provider adapter failed');
  else if (code === 'router.provider_misconfigured') log.error(fields, 'a provider rejected a request: its endpoint or its credential is misconfigured');
  else log.warn(fields, 'an attempt of a router call failed');
  return failure;
}
