import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { type Failure, failureOf, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type Answer, addPart, emptyAnswer, hasContent } from '#shared/surfaces/answer.ts';
import { type PreviousError, previousErrorOf } from '#shared/surfaces/error-body.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { CallSignal } from '../call-signal.ts';
import { partTransformOf } from '../pipeline/pipeline.ts';
import type { PartTransform } from '../pipeline/stage.ts';
import type { PartHandler, ProviderAdapter, ProviderTimeouts } from '../providers/provider.ts';
import { type Candidate, upstreamRequestOf } from './candidates.ts';
import { embedInputs } from './embed-inputs.ts';
import { failureReason } from './failure-reason.ts';
import { isRepeated, remainingAfter } from './fall-back.ts';
import type { AttemptHealth, AttemptVerdict } from './health/attempt-health.ts';
import type { Health } from './health/health.ts';
import type { VectorBudget } from './vector-budget.ts';

/** Over all candidates; bounds the caller's wait for an error. */
const MAX_ATTEMPTS = 8;
/** Models give a few hundred thousand tokens at most; more is a broken upstream. */
const MAX_ANSWER_CHARS = 16 * 1024 * 1024;

export interface RunDeps {
  /** By provider slug. */
  adapters: ReadonlyMap<string, ProviderAdapter>;
  timeouts: ProviderTimeouts;
  /** Of all calls of this worker. */
  vectorBudget: VectorBudget;
  health: Pick<Health, 'begin' | 'of'>;
  log: Log;
  metrics: Metrics;
}

/** What is tried, best first, and what each attempt's parts pass through. */
export interface CallPlan {
  candidates: readonly Candidate[];
  partTransforms: readonly PartTransform[];
}

export interface CallObserver {
  /** Whether text is needed after the end. */
  retainsAnswer: boolean;
  /** Whether parts are published as they come. */
  isStreamed?: boolean;
  /** Before each attempt. */
  begin(candidate: Candidate, adapter: ProviderAdapter, answer: Answer): void;
  parts(parts: readonly ProviderPart[]): void;
  /** After each attempt. */
  attempted?(attempt: Attempted): void;
}

/** Times are epoch milliseconds. */
export interface Attempted {
  candidate: Candidate;
  startMs: number;
  /** Of the first content; null: none came. */
  firstMs: number | null;
  endMs: number;
  /** Partial when `error` is set. */
  answer: Answer;
  /** Null on success. */
  error: unknown;
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
export async function runCall({ candidates, partTransforms }: CallPlan, observer: CallObserver, signal: CallSignal, deps: RunDeps): Promise<CallOutcome> {
  const previousErrors: PreviousError[] = [];
  let outcome: CallOutcome = { type: 'aborted', candidate: null, partial: null, previousErrors };
  let queue = [...candidates];
  let hasRepeated = false;
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const [candidate, ...rest] = queue;
    if (candidate === undefined) break;
    if (signal.aborted) return { type: 'aborted', candidate, partial: null, previousErrors };
    const answer = emptyAnswer(observer.retainsAnswer);
    const tried: Attempted = { candidate, startMs: Date.now(), firstMs: null, endMs: 0, answer, error: null };
    const health = deps.health.begin(candidate);
    const error = await runAttempt(tried, { observer, partTransforms, health }, signal, deps);
    const mayRepeat: boolean = error !== null && !hasRepeated && isRepeated(error);
    health.end(verdictOf(tried, signal.aborted || mayRepeat));
    observer.attempted?.(tried);
    if (error === null) return { type: 'completed', candidate, answer };
    const partial = hasContent(answer) ? answer : null;
    if (signal.aborted) return { type: 'aborted', candidate, partial, previousErrors };
    const failure = report(error, candidate, attempt, deps.log);
    outcome = { type: 'failed', error, candidate, partial, previousErrors: [...previousErrors] };
    if (partial !== null) return outcome;
    previousErrors.push(previousErrorOf(error, candidate.provider.name, candidate.model.id));
    hasRepeated ||= mayRepeat;
    queue = mayRepeat ? queue : remainingAfter(failure.code, candidate, rest);
  }
  return outcome;
}

/** @param saysNothing it was aborted, or is repeated at the same endpoint, which decides */
function verdictOf({ error, answer: { usage } }: Attempted, saysNothing: boolean): AttemptVerdict {
  if (error === null) return { how: 'succeeded', completionTokens: usage?.completionTokens ?? null };
  return saysNothing ? { how: 'aborted' } : { how: 'failed', error };
}

interface Attempting {
  observer: CallObserver;
  partTransforms: readonly PartTransform[];
  health: AttemptHealth;
}

/** One attempt. @returns the error; null on success */
async function runAttempt(tried: Attempted, { observer, partTransforms, health }: Attempting, signal: CallSignal, deps: RunDeps): Promise<unknown> {
  const { adapters, metrics, timeouts } = deps;
  const { candidate, answer } = tried;
  const { slug: provider } = candidate.provider;
  const startedAtMs = performance.now();
  const seconds = () => (performance.now() - startedAtMs) / 1_000;
  const onContent = () => {
    if (tried.firstMs !== null) return;
    tried.firstMs = Date.now();
    health.answered();
    metrics.observe('upstreamFirstPartSeconds', { provider }, seconds());
  };
  let error: unknown;
  try {
    const adapter = adapters.get(provider);
    if (adapter === undefined) throw new SwitchyardError('config.invalid', `there is no provider ${provider}`);
    observer.begin(candidate, adapter, answer);
    const { onParts, stopped } = partHandlerFor(tried, { observer, partTransforms, health, onContent }, signal);
    const { vectors } = candidate;
    if (vectors === null) await adapter.stream({ ...upstreamRequestOf(candidate), timeouts, isStreamed: observer.isStreamed ?? false }, signal, onParts);
    else await embedInputs({ candidate, plan: vectors, timeouts, budget: deps.vectorBudget }, adapter, signal, onParts);
    error = stopped() ?? incompletenessOf(tried);
  } catch (thrown) {
    error = thrown;
  }
  tried.endMs = Date.now();
  tried.error = error;
  metrics.observe('upstreamSeconds', { provider }, seconds());
  const model = candidate.model.id;
  metrics.add('upstreamAttempts', { model, provider, outcome: error === null ? 'ok' : signal.aborted ? 'aborted' : failureOf(error).code });
  return error;
}

function incompletenessOf({ candidate: { provider }, answer: { finishReason } }: Attempted): SwitchyardError | null {
  if (finishReason === null) return new SwitchyardError('router.provider_unavailable', `${provider.name} closed the stream before it had finished`);
  if (finishReason === 'error') return new SwitchyardError('router.provider_unavailable', `${provider.name} ended its answer with an error`);
  return null;
}

interface ContentObserver extends Attempting {
  onContent(): void;
}

/** Accumulates and publishes parts. `stopped` returns why reading ended, null on success. */
function partHandlerFor({ candidate: { provider }, answer }: Attempted, { observer, partTransforms, onContent }: ContentObserver, signal: CallSignal) {
  const transform = partTransformOf(partTransforms, answer);
  let chars = 0;
  let reason: unknown = null;
  const add = (received: readonly ProviderPart[]) => {
    // Parts that arrived before the abort must not be published.
    signal.throwIfAborted();
    const parts = transform === null ? received : transform(received);
    let added = 0;
    for (const part of parts) added += addPart(answer, part);
    chars += added;
    if (chars + answer.hiddenReasoningChars > MAX_ANSWER_CHARS)
      throw new SwitchyardError('router.provider_unavailable', `${provider.name} sent an answer of more than ${MAX_ANSWER_CHARS} characters`);
    if (added === 0) return;
    onContent();
    observer.parts(parts);
  };
  const onParts: PartHandler = (received) => {
    try {
      add(received);
      return true;
    } catch (error) {
      reason = error;
      return false;
    }
  };
  return { onParts, stopped: () => reason };
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
