import type { Bus } from '#bus/bus.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import type { UsageRecord } from '#bus/messages/usage.ts';
import type { RunningItem } from '#services/work/running-items.ts';
import type { Clock } from '#shared/clock.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { nanoOfUsd } from '#shared/credit/nano-usd.ts';
import type { RatedCall } from '#shared/rates/rate-limits.ts';
import { rateCounterOf, rateWindowOf } from '#shared/rates/rate-windows.ts';
import type { TokenCorrections } from '#shared/rates/token-corrections.ts';
import { type Answer, hasContent } from '#shared/surfaces/answer.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { Attempted } from './call/attempt.ts';
import type { Candidate, Catalogue, Choice } from './call/candidates.ts';
import type { ShownAnswer } from './call/execute-call.ts';
import type { Ending } from './call/execution.ts';
import type { ModelEndpoint } from './call/model-endpoint.ts';
import { requestFor } from './call/parameters.ts';
import { type AddedUse, type Bill, billOf } from './call/usage.ts';
import { interimBill, interimSearch } from './interim/interim-bill.ts';
import type { Shown } from './published-frames.ts';
import { type ServedBy, usageRecordOf } from './usage-record.ts';
import { storeRecord } from './usage-recorder.ts';

/** How long a terminal frame waits for its record. Then the item is redelivered: a terminal frame without a record would be an answer without a bill. */
const RESERVED_WAIT_MS = 10_000;

interface RecordDeps {
  bus: Pick<Bus, 'usage'>;
  /** Null: the key's tokens per minute are not corrected. */
  tokenCorrections: TokenCorrections | null;
  catalogue: Catalogue;
  clock: Clock;
  log: Log;
  metrics: Metrics;
}

/** A call of this worker. */
interface OpenCall {
  call: RouterCall;
  /** Filled while it runs. */
  attempts: readonly Attempted[];
  running: RunningItem;
  /** What this worker has counted for its key; null: nothing. */
  rated: RatedCall | null;
  /** By the platform that executes it: nothing is recorded here. */
  isBilledElsewhere: boolean;
}

/**
 * The usage record of one call. With a reservation it is stored before the terminal frame is sent; without one it is sent before the terminal frame and stored
 * before the item is acknowledged. So each terminal frame that a reader has is recorded, and each acknowledged item.
 */
export class CallRecord {
  /** Null: no decision was made. */
  choice: Choice | null = null;
  /** By stages; null: none has run. */
  added: AddedUse | null = null;
  readonly #open: OpenCall;
  readonly #deps: RecordDeps;
  /** Whose parts are published; null: none was begun. */
  #answering: { candidate: Candidate; answer: Answer } | null = null;
  #bill: Bill | null = null;
  /** It has ended for its readers, or its worker has died. Gateways abort what they have given up, which cancels nothing then. */
  #isOver = false;
  /** Or left to another delivery or to the worker that has published its terminal frame. */
  #isCorrected = false;
  #servedBy: ServedBy | null = null;
  #stored: Promise<void> = Promise.resolve();

  constructor(open: OpenCall, deps: RecordDeps) {
    this.#open = open;
    this.#deps = deps;
  }

  /** Null: nothing was used, or the call has not ended. */
  get bill(): Bill | null {
    return this.#bill;
  }

  /** The endpoint of an answer that another worker gave; null: this one did. */
  get servedBy(): ServedBy | null {
    return this.#servedBy;
  }

  /** Rejects when the record is not known to be stored: the item is to be redelivered. */
  get stored(): Promise<void> {
    return this.#stored;
  }

  /** Of an attempt whose parts are published from now on. */
  answering(candidate: Candidate, answer: Answer): void {
    this.#answering = { candidate, answer };
  }

  /** The record of the call if its worker died now. Null: nothing is shown. */
  interim(): UsageRecord | null {
    const { call, attempts } = this.#open;
    if (this.#answering === null || !hasContent(this.#answering.answer)) return null;
    const { candidate, answer } = this.#answering;
    const { model, provider, endpoint, request } = candidate;
    const servedBy = { model: model.id, provider: provider.slug, providerName: provider.name };
    const { added } = this;
    const bill = billOf(answer, request, endpoint, 'failed', added ?? undefined);
    const ending: Ending = { how: 'failed', answer, bill, ...(added !== null && { search: added.search }) };
    const isReserved = call.reserved === true;
    const endedAtMs = this.#deps.clock.nowMs();
    return usageRecordOf({ call, keyId: call.keyId, isReserved, ending, attempts, choice: this.choice, servedBy, isCancelled: false, endedAtMs });
  }

  /** Sends the record. @returns what the terminal frame waits for; null: it may leave at once */
  store(ending: Ending): Promise<void> | null {
    const { call, attempts, running, rated, isBilledElsewhere } = this.#open;
    const isReserved = call.reserved === true;
    this.#bill = ending.bill;
    if (isBilledElsewhere) return null;
    const record = usageRecordOf({
      call,
      keyId: call.keyId,
      isReserved,
      ending,
      attempts,
      choice: this.choice,
      servedBy: this.#servedBy,
      isCancelled: running.isCancelled() && !this.#isOver,
      endedAtMs: this.#deps.clock.nowMs(),
    });
    const waiting = { limitMs: isReserved ? RESERVED_WAIT_MS : null, leaseLost: () => running.leaseLost };
    this.#stored = storeRecord(record, waiting, { usage: this.#deps.bus.usage, log: this.#deps.log, metrics: this.#deps.metrics });
    rated?.correct(record.tokens.prompt + record.tokens.completion);
    const { countedTokens } = call;
    const correct = countedTokens === undefined ? null : () => this.#correctRate(countedTokens, record);
    // Awaited later, or never once the lease is lost.
    this.#stored.then(correct, () => {});
    return isReserved ? this.#stored : null;
  }

  /** Of a call whose item is redelivered: the next delivery corrects the rate of its key, unless this one has done so. */
  leaveCorrection(): void {
    const { call, running } = this.#open;
    if (this.#isCorrected && running.delivery === 1) this.#deps.tokenCorrections?.noteCorrected(call.callId);
    this.#isCorrected = true;
  }

  /**
   * The estimate at admission was the most that it might use. Later windows count nothing of it. Once per call, when its record is stored: a worker without the
   * lease leaves it to the next one, and of a redelivered call and one that its gateway has cancelled, which may be executed twice at a time, the first counts.
   */
  #correctRate(countedTokens: number, { keyId, createdAtMs, endedAtMs, tokens }: UsageRecord): void {
    const { tokenCorrections } = this.#deps;
    const { call, running } = this.#open;
    if (tokenCorrections === null || this.#isCorrected || running.isLeaseLost || rateWindowOf(createdAtMs) !== rateWindowOf(endedAtMs)) return;
    this.#isCorrected = true;
    const [counter, by] = [rateCounterOf('tokens', keyId, createdAtMs), tokens.prompt + tokens.completion - countedTokens];
    if (running.delivery > 1 || running.isCancelled()) tokenCorrections.addOnce(call.callId, counter, by);
    else tokenCorrections.add(counter, by);
  }

  /**
   * Of a call whose worker died in the middle of its answer: what its interim record has, and what more is retained of its frames. The record knows what the
   * upstream has counted, which no frame states.
   * @param interim null: it is not known
   */
  lost(shown: Shown | null, interim: UsageRecord | null): ShownAnswer | null {
    this.#isOver ||= shown !== null || interim !== null;
    const answer = shown?.answer ?? null;
    const found = shown === null ? null : this.#endpointOf(shown);
    const bill = answer === null ? null : billOf(answer, this.#requestAt(found), found?.endpoint, 'failed');
    if (interim === null) return answer === null || bill === null ? null : { answer, bill };
    const { model, provider, providerName } = interim;
    if (model !== null && providerName !== null) this.#servedBy = { model, provider, providerName };
    const served = found ?? this.#endpointOf({ model, providerName });
    const at = { request: this.#requestAt(served), prices: served?.endpoint.prices };
    return { answer, bill: interimBill(interim, bill?.usage ?? null, at), ...interimSearch(interim) };
  }

  /** Of a call whose terminal frame readers have: its worker may have died before the record was stored. What the frame states is billed. */
  storeEnded(shown: Shown, interim: UsageRecord | null): Promise<void> {
    const { answer } = shown;
    this.#isOver = true;
    this.#isCorrected = true;
    if (answer.usage === null) {
      const lost = this.lost(hasContent(answer) ? shown : null, interim);
      const searched = lost?.search === undefined ? {} : { search: lost.search };
      void this.store({ how: 'failed', answer, bill: lost?.bill ?? null, ...searched });
    } else {
      const found = this.#endpointOf(shown);
      const bill = billOf(answer, this.#requestAt(found), found?.endpoint);
      void this.store({ how: 'completed', answer, bill: shown.cost === null ? bill : { ...bill, costNano: nanoOfUsd(shown.cost) } });
    }
    return this.#stored;
  }

  /** What another worker has made the endpoint's request from: of what it lacks nothing is billed. @param found null: it is not known */
  #requestAt(found: ModelEndpoint | null): ChatRequest {
    const { request, maxTokens, reserved = false, embedding = null } = this.#open.call;
    return found === null || embedding !== null ? request : requestFor(found, request, maxTokens, reserved);
  }

  #endpointOf({ model, providerName }: Pick<Shown, 'model' | 'providerName'>): ModelEndpoint | null {
    if (model === null || providerName === null) return null;
    const { names, modelEndpoints } = this.#deps.catalogue;
    const configured = names.resolve(model)?.model;
    const endpoints = configured === undefined ? [] : (modelEndpoints.get(configured) ?? []);
    const found = endpoints.find(({ provider }) => provider.name === providerName) ?? null;
    if (found !== null) this.#servedBy = { model, provider: found.provider.slug, providerName };
    return found;
  }
}
