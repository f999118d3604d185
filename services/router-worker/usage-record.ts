import type { RouterCall } from '#bus/messages/router.ts';
import { USAGE_RECORD_VERSION, type UsageAttempt, type UsageRecord } from '#bus/messages/usage.ts';
import { errorCatalogue, failureOf } from '#shared/errors/switchyard-error.ts';
import { finishReasonOf, hasContent } from '#shared/surfaces/answer.ts';
import type { Attempted } from './call/attempt.ts';
import type { Choice } from './call/candidates.ts';
import type { Ending } from './call/execution.ts';
import { billedPrices, costOf, sentOf, usedBy } from './call/usage.ts';
import { recordedDecisionOf } from './recorded-decision.ts';
import { storedText } from './stored-text.ts';

/** Of texts that callers give: the record is a row, and is listed. */
const MAX_TEXT_CHARS = 512;
const MAX_METADATA_KEY_CHARS = 64;
const MAX_METADATA_PAIRS = 16;

/** The endpoint that a record names. */
export interface ServedBy {
  model: string;
  /** Slug; null: the configuration has no such provider any more. */
  provider: string | null;
  providerName: string;
}

export interface RecordedCall {
  call: RouterCall;
  /** Resolved: its id, as the ledger has it. */
  keyId: string;
  isReserved: boolean;
  ending: Ending;
  attempts: readonly Attempted[];
  /** Null: no decision was made. */
  choice: Choice | null;
  /** Of an answer that another worker gave; null: the last attempt says it. */
  servedBy: ServedBy | null;
  isCancelled: boolean;
  endedAtMs: number;
}

/** The usage record of an ended call, without texts of its messages. */
export function usageRecordOf(recorded: RecordedCall): UsageRecord {
  const { call, keyId, isReserved, ending, attempts, choice, isCancelled, endedAtMs } = recorded;
  const { request, reply } = call;
  const { bill, answer } = ending;
  const served = recorded.servedBy ?? servedByLast(attempts);
  const { prompt_tokens: prompt = 0, completion_tokens: completion = 0, prompt_tokens_details: read, completion_tokens_details: made } = bill?.usage ?? {};
  const kept = bill?.cacheWrite1hTokens;
  const forAnHour = kept === undefined ? {} : { cacheWrite1h: kept };
  // In this order: see `ledgerFieldsIn`.
  return {
    v: USAGE_RECORD_VERSION,
    generationId: call.callId,
    keyId,
    reserved: isReserved,
    createdAtMs: call.createdAtMs,
    model: served?.model ?? null,
    provider: served?.provider ?? null,
    tokens: {
      prompt,
      completion,
      reasoning: made?.reasoning_tokens ?? 0,
      cached: read?.cached_tokens ?? 0,
      cacheWrite: read?.cache_write_tokens ?? 0,
      ...forAnHour,
    },
    costNano: bill?.costNano ?? 0,
    kind: reply === null ? 'client' : 'actor',
    surface: call.surface ?? 'chat-completions',
    endedAtMs,
    streamed: call.want === 'frames',
    cancelled: isCancelled,
    providerName: served?.providerName ?? null,
    upstreamId: textOf(answer?.metadata.id ?? null),
    estimated: bill?.isEstimated ?? false,
    ...searchesOf(ending),
    attempts: attempts.map(attemptOf),
    finishReason: finishOf(ending, isCancelled),
    nativeFinishReason: textOf(answer?.nativeReason ?? null),
    sessionId: reply?.sessionId ?? textOf(request.session_id ?? null),
    user: textOf(request.user ?? null),
    metadata: request.metadata === undefined ? null : metadataOf(request.metadata),
    serviceTier: textOf(answer?.metadata.serviceTier ?? null),
    ...(choice !== null && { decision: recordedDecisionOf(choice, attempts) }),
  };
}

/** Without a stage of this worker it is not known what made them. */
function searchesOf({ bill, search }: Ending): Pick<UsageRecord, 'searches' | 'searchEngine' | 'searchResults'> {
  const searches = bill?.usage.server_tool_use?.web_search_requests;
  if (searches === undefined) return {};
  if (search === undefined) return { searches };
  return search === null ? { searches, searchEngine: 'native' } : { searches, searchEngine: search.engine, searchResults: search.results };
}

function servedByLast(attempts: readonly Attempted[]): ServedBy | null {
  const last = attempts.at(-1);
  if (last === undefined) return null;
  const { model, provider } = last.candidate;
  return { model: model.id, provider: provider.slug, providerName: provider.name };
}

/** Null: the caller ended it, or the whole answer of another worker says no more. */
function finishOf({ how, answer }: Ending, isCancelled: boolean): string | null {
  if (isCancelled) return null;
  if (how !== 'completed') return 'error';
  return answer === null || answer.finishReason === null ? null : finishReasonOf(answer);
}

function attemptOf(attempt: Attempted): UsageAttempt {
  const { candidate, startMs, firstMs, endMs, error } = attempt;
  const failure = error === null ? null : failureOf(error);
  return {
    provider: candidate.provider.slug,
    providerName: candidate.provider.name,
    model: candidate.model.id,
    status: failure === null ? 200 : errorCatalogue[failure.code].status,
    code: failure?.code ?? null,
    startedAtMs: startMs,
    firstTokenMs: firstMs === null ? null : Math.max(0, firstMs - startMs),
    durationMs: Math.max(0, endMs - startMs),
    costNano: operatorCostOf(attempt),
  };
}

/** What the provider charges for it, as far as is known: for all that it made, and for the prompt of a request that it took and did not refuse. */
function operatorCostOf({ candidate, answer, error, refusedChars = 0 }: Attempted): number | null {
  const { endpoint, request } = candidate;
  const { prices } = endpoint;
  if (prices === undefined) return null;
  const isCounted = answer.usage !== null || answer.usageSoFar !== null;
  if (error !== null && !isCounted && !hasContent(answer) && answer.vectors === null && wasNotTaken(error)) return 0;
  const whole = refusedChars === 0 ? answer : { ...answer, textChars: answer.textChars + refusedChars };
  const { used } = usedBy(whole, request, endpoint, error === null ? 'completed' : 'failed');
  const sent = sentOf(request, answer);
  return costOf(used, sent, billedPrices(answer.metadata.serviceTier, sent, prices)).total;
}

/** Refused with a status, or not sent: the network gives a reason. */
function wasNotTaken(error: unknown): boolean {
  const { details } = failureOf(error);
  return details.status !== undefined || details.reason !== undefined;
}

function metadataOf(metadata: Record<string, string>): Record<string, string> {
  const pairs = Object.entries(metadata).slice(0, MAX_METADATA_PAIRS);
  return Object.fromEntries(pairs.map(([key, value]) => [storedText(key, MAX_METADATA_KEY_CHARS), storedText(value, MAX_TEXT_CHARS)]));
}

function textOf(text: string | null): string | null {
  return text === null ? null : storedText(text, MAX_TEXT_CHARS);
}
