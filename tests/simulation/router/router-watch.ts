import type { RouterCall } from '../../../bus/messages/router.ts';
import { RATE_COUNTER_MS, rateWindowOf } from '../../../shared/rates/rate-windows.ts';
import type { BrokerWatch, LogEntry } from '../model-broker.ts';
import type { Process, Scheduler } from '../scheduler.ts';
import { type LedgerTables, spentIn } from './ledger-tables.ts';
import type { ModelUsage } from './model-usage.ts';
import { keys } from './router-setup.ts';

/** Frames of a client's call that end its answer. */
const TERMINAL = 'deb';

/** Checks at each step what would not be seen at the end, and notes what happened to which call. */
export class RouterWatch implements BrokerWatch {
  readonly #scheduler: Scheduler;
  readonly #tables: LedgerTables;
  readonly violations: string[] = [];
  /** Calls that were put on the queue. */
  readonly queued = new Set<string>();
  /** Calls that a gateway could not put on the queue. */
  readonly unpublished = new Set<string>();
  /** Workers that got a call. */
  readonly #takers = new Map<string, Process[]>();
  /** Workers that gave up a dispatched call. What they have put on the queue is billed in any case. */
  readonly #givenUp = new Map<string, Process[]>();
  /** Calls whose item or record was lost with the broker's store. */
  readonly lost = new Set<string>();
  /** Calls that have, or had, an interim record. */
  readonly interims = new Set<string>();
  /** Tokens of calls that were counted for all gateways, by key and minute, then by call. */
  readonly #counted = new Map<string, Map<string, number>>();
  /** Calls with a reservation, by id. */
  readonly #reserved = new Set<string>();

  constructor(scheduler: Scheduler, tables: LedgerTables) {
    this.#scheduler = scheduler;
    this.#tables = tables;
  }

  breach(rule: string, what: string): void {
    this.violations.push(`${rule}: ${what} (step ${this.#scheduler.steps})`);
  }

  givenUp(process: Process, callId: string): void {
    this.#givenUp.set(callId, [...(this.#givenUp.get(callId) ?? []), process]);
  }

  taken(process: Process, callId: string): void {
    this.#takers.set(callId, [...(this.#takers.get(callId) ?? []), process]);
  }

  /** Calls that were counted for all gateways together are within their key's limits, whatever gateway had them. */
  arrived(callId: string, body: string): void {
    const { keyId, createdAtMs, countedTokens } = JSON.parse(body) as RouterCall;
    const key = Object.values(keys).find(({ id }) => id === keyId);
    if (key === undefined || countedTokens === undefined) return;
    // Of a gateway that stood still for so long that the counter of the minute is gone.
    if (this.#scheduler.nowMs - createdAtMs > RATE_COUNTER_MS / 2) return;
    const minute = `${key.id} ${rateWindowOf(createdAtMs)}`;
    const counted = this.#counted.get(minute) ?? new Map<string, number>();
    this.#counted.set(minute, counted.set(callId, countedTokens));
    const { requestsPerMinute, tokensPerMinute } = key.rates;
    const tokens = [...counted.values()].reduce((sum, count) => sum + count, 0);
    if (counted.size > (requestsPerMinute ?? Number.POSITIVE_INFINITY)) this.breach('rate', `${key.id} has made ${counted.size} calls in a minute`);
    if (tokens > (tokensPerMinute ?? Number.POSITIVE_INFINITY)) this.breach('rate', `${key.id} has used ${tokens} tokens in a minute`);
  }

  wasTaken(callId: string): boolean {
    return this.#takers.has(callId);
  }

  /** Whether each worker that got the call died, or gave it up. */
  isTakerLost(callId: string): boolean {
    return (this.#takers.get(callId) ?? []).every((process) => process.state === 'dead' || this.#givenUp.get(callId)?.includes(process));
  }

  /**
   * Rows have changed: no key has spent and reserved more than its limit. Calls that end after their reservation has lapsed come on top: a worker was paused for
   * more than a minute past their deadline (docs/guarantees.md, Limits).
   */
  committed(): void {
    for (const callId of this.#tables.reservations.keys()) this.#reserved.add(callId);
    for (const callId of this.#tables.interims.keys()) this.interims.add(callId);
    for (const { id, limitNano, limitReset } of Object.values(keys)) {
      const row = this.#tables.spend.get(id);
      if (limitNano === null || row === undefined) continue;
      const spent = spentIn(row, limitReset ?? '', this.#scheduler.nowMs);
      if (spent + row.reserved_nano > limitNano + this.#lapsedOf(id))
        this.breach('limit', `${id} has spent ${spent} and reserved ${row.reserved_nano} of ${limitNano}`);
    }
  }

  #lapsedOf(key: string): number {
    const { lapsed, ledger } = this.#tables;
    return lapsed.reduce((sum, { key_id, call_id }) => sum + (key_id === key ? (ledger.get(call_id)?.[0]?.cost_nano ?? 0) : 0), 0);
  }

  /** A frame has reached the broker, and may be shown. */
  frame(subject: string, frame: Uint8Array, usage: ModelUsage): void {
    if (!TERMINAL.includes(String.fromCharCode(frame[0] ?? 0))) return;
    const callId = subject.slice(subject.lastIndexOf('.') + 1);
    if (this.#reserved.has(callId) && !usage.stored.has(callId)) this.breach('record first', `the end of ${callId} is shown before its record is stored`);
  }

  appended({ messageId }: LogEntry): void {
    this.#tables.effects.set(messageId, false);
  }

  /** Its dispatches are those of router-bus.ts. */
  dispatched(): void {}

  /** The broker recognises a repeat by its message id. */
  published(kind: string, messageId: string, body: string): void {
    this.queued.add(messageId);
    if (kind === 'router.call' && (JSON.parse(body) as RouterCall).callId !== messageId) this.breach('message id', `a call was published as ${messageId}`);
  }

  handed(): void {}
  acked(): void {}
  noticePublished(): void {}
}
