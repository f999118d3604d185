import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { failureOf, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type Answer, addPart, charsOf, emptyAnswer, logprobsCharsOf, textCharsOf } from '#shared/surfaces/answer.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { CallSignal } from '../call-signal.ts';
import { partTransformOf } from '../pipeline/pipeline.ts';
import type { PartTransform } from '../pipeline/stage.ts';
import type { PartHandler, ProviderAdapter, ProviderCall, ProviderTimeouts } from '../providers/provider.ts';
import { type Candidate, upstreamRequestOf } from './candidates.ts';
import { embedInputs } from './embed-inputs.ts';
import type { AttemptHealth, AttemptVerdict } from './health/attempt-health.ts';
import type { Health } from './health/health.ts';
import type { VectorBudget } from './vector-budget.ts';

/** Models give a few hundred thousand tokens at most; more is a broken upstream. */
const MAX_ANSWER_CHARS = 16 * 1024 * 1024;
/**
 * So many characters of log probabilities, as JSON, count as one of an answer that keeps them: the text of a model with the twenty likeliest tokens at each place
 * may have three hundred times its length. As JSON they have one byte each, where those of texts have up to six, and fit a frame of the bus.
 */
const LOGPROBS_CHARS_PER_CHAR = 3;

export interface RunDeps {
  /** By provider slug. */
  adapters: ReadonlyMap<string, ProviderAdapter>;
  timeouts: ProviderTimeouts;
  /** Of all calls of this worker. */
  vectorBudget: VectorBudget;
  health: Pick<Health, 'begin' | 'of' | 'firstTokenP95Ms'>;
  log: Log;
  metrics: Metrics;
}

export interface CallObserver {
  /** Whether text is needed after the end. */
  retainsAnswer: boolean;
  /** Whether parts are published as they come. */
  isStreamed?: boolean;
  /** The most that it can publish of texts and arguments of one answer, in characters. Absent: as much as any answer. */
  maxTextChars?: number;
  /** Before each attempt. */
  begin(candidate: Candidate, adapter: ProviderAdapter, answer: Answer): void;
  /** A hedged attempt has the first content: the parts that follow are those of this answer. Absent: each attempt is the last that was begun. */
  chosen?(candidate: Candidate, answer: Answer): void;
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
  /** Pieces of content that came. */
  deltas: number;
  /** Partial when `error` is set. */
  answer: Answer;
  /** Characters of texts and arguments that came, made the answer too long and were not published. Absent: none. */
  refusedChars?: number;
  /** Null on success. */
  error: unknown;
  /** Of two that ran beside each other, which it is. Absent: it ran alone. */
  hedge?: 'first' | 'second';
  /** Whether it was aborted because the other had the first content. Absent: no. */
  outrun?: true;
}

/** An attempt at an endpoint. */
export interface Attempt {
  tried: Attempted;
  health: AttemptHealth;
}

export function beginAttempt(candidate: Candidate, observer: CallObserver, deps: RunDeps): Attempt {
  const answer = emptyAnswer(observer.retainsAnswer);
  return { tried: { candidate, startMs: Date.now(), firstMs: null, endMs: 0, deltas: 0, answer, error: null }, health: deps.health.begin(candidate) };
}

/** Reports what an ended attempt says about its endpoint. @param saysNothing it was aborted, or is repeated at the same endpoint, which decides */
export function endAttempt({ tried, health }: Attempt, saysNothing: boolean): void {
  health.end(verdictOf(tried, saysNothing));
}

function verdictOf({ error, outrun, answer: { usage } }: Attempted, saysNothing: boolean): AttemptVerdict {
  if (error === null) return { how: 'succeeded', completionTokens: usage?.completionTokens ?? null };
  return saysNothing || outrun ? { how: 'aborted' } : { how: 'failed', error };
}

export interface Attempting {
  observer: CallObserver;
  partTransforms: readonly PartTransform[];
  /** Called with the first content, before it is published; false: it must not be. */
  commits(): boolean;
}

/** Runs an attempt to its end, or to that of its signal. Never rejects. */
export async function runAttempt({ tried, health }: Attempt, attempting: Attempting, signal: CallSignal, deps: RunDeps): Promise<void> {
  const { adapters, metrics, timeouts } = deps;
  const { observer } = attempting;
  const { candidate, answer } = tried;
  const { slug: provider } = candidate.provider;
  const startedAtMs = performance.now();
  const seconds = () => (performance.now() - startedAtMs) / 1_000;
  const onContent = () => {
    if (tried.firstMs !== null) return;
    if (!attempting.commits()) throw outrun();
    tried.firstMs = Date.now();
    health.answered();
    metrics.observe('upstreamFirstPartSeconds', { provider }, seconds());
  };
  let error: unknown;
  try {
    const adapter = adapters.get(provider);
    if (adapter === undefined) throw new SwitchyardError('config.invalid', `there is no provider ${provider}`);
    observer.begin(candidate, adapter, answer);
    const { onParts, stopped } = partHandlerFor(tried, attempting, onContent, signal);
    const { vectors } = candidate;
    if (vectors === null) await adapter.stream(providerCallOf(candidate, timeouts, observer), signal, onParts);
    else await embedInputs({ candidate, plan: vectors, timeouts, budget: deps.vectorBudget }, adapter, signal, onParts);
    error = stopped() ?? incompletenessOf(tried);
  } catch (thrown) {
    error = thrown;
  }
  tried.endMs = Date.now();
  // One that was outrun has ended already, whatever its adapter made of the abort.
  tried.error = tried.outrun ? outrun() : error;
  metrics.observe('upstreamSeconds', { provider }, seconds());
  metrics.add('upstreamAttempts', { model: candidate.model.id, provider, outcome: outcomeOf(tried, signal) });
}

/** Written out, without a spread: see ADR 126. */
function providerCallOf(candidate: Candidate, timeouts: ProviderTimeouts, { isStreamed = false }: CallObserver): ProviderCall {
  const { model, request, maxCompletionTokens, searchesWeb = false } = upstreamRequestOf(candidate);
  return { model, request, maxCompletionTokens, searchesWeb, timeouts, isStreamed };
}

function outcomeOf({ error, outrun: isOutrun }: Attempted, signal: CallSignal): string {
  if (error === null) return 'ok';
  if (isOutrun) return 'outrun';
  return signal.aborted ? 'aborted' : failureOf(error).code;
}

/** Why a hedged attempt ends that has not had the first content. */
export function outrun(): SwitchyardError {
  return new SwitchyardError('router.cancelled', 'another attempt of the call was faster');
}

function incompletenessOf({ candidate: { provider }, answer: { finishReason } }: Attempted): SwitchyardError | null {
  if (finishReason === null) return new SwitchyardError('router.provider_unavailable', `${provider.name} closed the stream before it had finished`);
  if (finishReason === 'error') return new SwitchyardError('router.provider_unavailable', `${provider.name} ended its answer with an error`);
  return null;
}

/** Accumulates and publishes parts. `stopped` returns why reading ended, null on success. */
function partHandlerFor(tried: Attempted, { observer, partTransforms }: Attempting, onContent: () => void, signal: CallSignal) {
  const {
    answer,
    candidate: { provider },
  } = tried;
  const transform = partTransformOf(partTransforms, answer);
  const { maxTextChars = MAX_ANSWER_CHARS } = observer;
  // A stream with a bound of its own repeats them in its last events; other streams do not keep them.
  const keepsLogprobs = observer.retainsAnswer || observer.maxTextChars !== undefined;
  let chars = 0;
  let logprobsChars = 0;
  let textChars = 0;
  let reason: unknown = null;
  const add = (received: readonly ProviderPart[]) => {
    // Parts that arrived before the abort must not be published.
    signal.throwIfAborted();
    const parts = transform === null ? received : transform(received);
    let added = 0;
    let addedText = 0;
    for (const part of parts) {
      const charsOfPart = charsOf(part);
      if (charsOfPart > 0) tried.deltas += 1;
      added += charsOfPart;
      addedText += textCharsOf(part);
      if (keepsLogprobs) logprobsChars += logprobsCharsOf(part);
    }
    chars += added;
    textChars += addedText;
    const keptChars = logprobsChars / LOGPROBS_CHARS_PER_CHAR;
    const shownOrHidden = chars + answer.hiddenReasoningChars;
    const isLong = shownOrHidden + keptChars > MAX_ANSWER_CHARS;
    if (isLong || textChars + keptChars > maxTextChars) {
      refuse(parts, addedText);
      const [most, why] = isLong ? [MAX_ANSWER_CHARS, ''] : [maxTextChars, ', the most that a stream of this API can have'];
      throw tooLong(provider, most, shownOrHidden > MAX_ANSWER_CHARS || textChars > maxTextChars ? why : `${why}, counting a third of its log probabilities`);
    }
    for (const part of parts) addPart(answer, part);
    if (added === 0) return;
    onContent();
    observer.parts(parts);
  };
  /** The answer stays what was published: of the parts it gets only what the upstream counted. */
  const refuse = (parts: readonly ProviderPart[], refusedChars: number) => {
    tried.refusedChars = refusedChars;
    for (const part of parts) if (part.type === 'usage' || part.type === 'usage-so-far') addPart(answer, part);
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

function tooLong(provider: Candidate['provider'], most: number, why: string): SwitchyardError {
  return new SwitchyardError('router.provider_unavailable', `${provider.name} sent an answer of more than ${most} characters${why}`);
}
