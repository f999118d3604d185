import { type Clock, systemClock } from '../clock.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { Database, NamedStatement } from '../storage/database.ts';
import { isLockTimeout, sqlStateOf } from '../storage/transient-error.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { within } from '../within.ts';
import { beginSpend, releaseCalls, reserveCalls, reserveTogether } from './reservation-statements.ts';

/** One statement; the next takes what came meanwhile. */
const MAX_BATCH = 500;
/** As many calls may be open at a gateway. */
const MAX_WAITING = 4_096;
/** For the database to answer: then the call is refused, and whatever the statement does after all is undone. */
const ANSWER_MS = 3_000;
const RETRY_AFTER_MS = 1_000;
/** Of releases that the database did not take. Beyond it they are left to their end. */
const MAX_RELEASES = 10_000;
const RELEASE_RETRY_MS = 1_000;
/** Beyond it all are forgotten: their rows are then asked for again. */
const MAX_KNOWN_KEYS = 10_000;
/** Of a call that is asked twice at the same time. */
const UNIQUE_VIOLATION = '23505';
/** Of a key without a row: one that is deleted at that moment is not asked for a third time. */
const MAX_TRIES = 3;
/** For reservations of calls that have just ended: the ledger settles them within a fifth of a second. */
const OCCUPIED_RETRY_MS = 100;
const MAX_OCCUPIED_TRIES = 5;
/** A worker reports a call's end shortly after its deadline; afterwards the call is dead. */
export const LAPSE_AFTER_MS = 60_000;

export interface AskedReservation {
  callId: string;
  keyId: string;
  /** The most that the call may cost. Billionths of a US dollar, as `limitNano`. */
  amountNano: number;
  limitNano: number;
  limitReset: 'daily' | 'weekly' | 'monthly' | null;
  /** The call's, by the clock of the deps. The reservation lapses `LAPSE_AFTER_MS` later. */
  deadlineAtMs: number;
  /**
   * The caller asks again under this id when the database can't say, as does another worker: what an attempt without an answer has reserved is the call's, and is
   * not released. Absent: the call is not sent then.
   */
  isAskedAgain?: true;
}

interface Waiting {
  asked: AskedReservation;
  tries: number;
  /** Tries at which reservations alone left no capacity. */
  occupiedTries: number;
  resolve(): void;
  reject(error: SwitchyardError): void;
}

/** Of a batch: nothing more is sent for it once it is refused, since the database did not answer in time. */
interface BatchState {
  isRefused: boolean;
}

interface ReservationsDeps {
  database: Database;
  log: Log;
  metrics: Metrics;
  /** Of the calls' deadlines: what is left until then counts, so it may be wrong. Absent: this process's. */
  clock?: Clock;
  /** For tests. */
  answerMs?: number;
}

/**
 * Reserves credit before calls are sent. All calls of one tick of the event loop go in one statement, and those that come while it runs in the next. Several
 * processes may reserve for the same key at once. The ledger settles a reservation with the call's usage record.
 */
export class Reservations {
  readonly #deps: ReservationsDeps;
  readonly #answerMs: number;
  #waiting: Waiting[] = [];
  /** Found their limit taken by reservations, and are tried again together. */
  #occupied: Waiting[] = [];
  #occupiedTimer: NodeJS.Timeout | null = null;
  #isScheduled = false;
  #isSending = false;
  /** Keys by call. */
  readonly #releases = new Map<string, string>();
  #releaseTimer: NodeJS.Timeout | null = null;
  /** Statements that did not answer in time, by call: a release that overtakes one would release nothing. */
  readonly #unanswered = new Map<string, Promise<unknown>>();
  readonly #keysWithRow = new Set<string>();
  /** Whose last batch was reserved for as a whole. Emptied with `#keysWithRow`. */
  readonly #keysWithCapacity = new Set<string>();
  #isStopped = false;

  constructor(deps: ReservationsDeps) {
    this.#deps = deps;
    this.#answerMs = deps.answerMs ?? ANSWER_MS;
  }

  /**
   * Resolves once credit is reserved; idempotent by call id. Where reservations alone leave no capacity it is tried again for half a second.
   * @throws `router.payment_required` without enough credit, `service.not_ready` when the database can't say in time: then nothing is reserved, or it is
   *   released as soon as the database is back, unless the call is asked again
   */
  reserve(asked: AskedReservation): Promise<void> {
    if (asked.limitNano <= 0) return Promise.reject(this.#refusal());
    if (this.#isStopped || this.#waiting.length + this.#occupied.length >= MAX_WAITING) return Promise.reject(this.#unavailable(undefined));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ asked, tries: 1, occupiedTries: 0, resolve, reject });
      this.#schedule();
    });
  }

  /**
   * Of a call that was not sent; sent once the statements that may reserve for it have ended here. The database may still execute one whose connection was
   * given up at the driver's limit, behind the release: what it reserves lapses, as does what waits for a statement at `stop`. Never throws: what the
   * database does not take now is sent again later, or lapses.
   */
  release(callId: string, keyId: string): void {
    const unanswered = this.#unanswered.get(callId);
    if (unanswered !== undefined) {
      void unanswered.then(() => this.release(callId, keyId));
      return;
    }
    if (this.#releases.size >= MAX_RELEASES) return;
    this.#releases.set(callId, keyId);
    this.#schedule();
  }

  /** Refuses what waits, and sends the releases once more, but those that wait for a statement. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const { reject } of [...this.#waiting.splice(0), ...this.#occupied.splice(0)]) reject(this.#unavailable(undefined));
    if (this.#occupiedTimer !== null) clearTimeout(this.#occupiedTimer);
    if (this.#releaseTimer !== null) clearTimeout(this.#releaseTimer);
    if (this.#releases.size > 0) await this.#sendReleases().catch(() => {});
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isSending) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#send();
    });
  }

  /** One batch at a time. Never rejects. */
  async #send(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    const batch = this.#waiting.splice(0, MAX_BATCH);
    try {
      if (batch.length > 0) await this.#reserveBatch(batch);
      if (this.#releases.size > 0 && this.#releaseTimer === null && !this.#isStopped) await this.#releaseBatch();
    } finally {
      this.#isSending = false;
      if (this.#waiting.length > 0) this.#schedule();
    }
  }

  async #reserveBatch(batch: readonly Waiting[]): Promise<void> {
    const state: BatchState = { isRefused: false };
    const statement = this.#outcomesOf(batch, state);
    try {
      const late = () => {
        state.isRefused = true;
        throw noAnswer();
      };
      const outcomes = await within(this.#answerMs, statement, late);
      for (const [index, waiting] of batch.entries()) this.#settle(waiting, outcomes[index]);
    } catch (error) {
      this.#deps.log.warn({ err: error, calls: batch.length }, 'credit could not be reserved: the calls are refused');
      for (const { asked, reject } of batch) {
        this.#deps.metrics.add('reservations', { outcome: 'unavailable' });
        reject(this.#unavailable(error));
        this.#awaitEnd(asked.callId, statement);
        if (asked.isAskedAgain !== true) this.release(asked.callId, asked.keyId);
      }
    }
  }

  #awaitEnd(callId: string, statement: Promise<unknown>): void {
    const ended: Promise<unknown> = Promise.allSettled([this.#unanswered.get(callId), statement]).then(() => {
      if (this.#unanswered.get(callId) === ended) this.#unanswered.delete(callId);
    });
    this.#unanswered.set(callId, ended);
  }

  /** A statement that waited too long for a key's row is sent again while there is time. */
  async #outcomesOf(batch: readonly Waiting[], state: BatchState): Promise<string[]> {
    for (;;) {
      try {
        return await this.#ask(batch, state);
      } catch (error) {
        if (!isLockTimeout(error)) throw error;
      }
    }
  }

  async #query<Row extends object>(state: BatchState, statement: NamedStatement, parameters: readonly unknown[]): Promise<Row[]> {
    if (state.isRefused) throw noAnswer();
    const { rows } = await this.#deps.database.query<Row>(statement, parameters);
    return rows;
  }

  async #ask(batch: readonly Waiting[], state: BatchState): Promise<string[]> {
    const { clock = systemClock } = this.#deps;
    const asked = batch.map((waiting) => waiting.asked);
    const unknown = [...new Set(asked.map(({ keyId }) => keyId))].filter((keyId) => !this.#keysWithRow.has(keyId));
    if (unknown.length > 0) {
      await this.#query(state, beginSpend, [unknown]);
      if (this.#keysWithRow.size + unknown.length > MAX_KNOWN_KEYS) {
        this.#keysWithRow.clear();
        this.#keysWithCapacity.clear();
      }
      for (const keyId of unknown) this.#keysWithRow.add(keyId);
    }
    const nowMs = clock.nowMs();
    const lapsesInMs = asked.map(({ deadlineAtMs }) => Math.max(0, Math.round(deadlineAtMs - nowMs)) + LAPSE_AFTER_MS);
    if (await this.#reserveTogether(asked, lapsesInMs, state)) return asked.map(() => 'reserved');
    const rows = await this.#query<{ outcome: string }>(state, reserveCalls, [
      asked.map(({ callId }) => callId),
      asked.map(({ keyId }) => keyId),
      asked.map(({ amountNano }) => amountNano),
      asked.map(({ limitNano }) => limitNano),
      asked.map(({ limitReset }) => limitReset ?? ''),
      lapsesInMs,
    ]);
    for (const { keyId } of asked) this.#keysWithCapacity.add(keyId);
    for (const [index, { keyId }] of asked.entries()) if (rows[index]?.outcome !== 'reserved') this.#keysWithCapacity.delete(keyId);
    return rows.map(({ outcome }) => outcome);
  }

  /** Whether all have a reservation now. False: none has got one, and what each call gets has to be decided. */
  async #reserveTogether(asked: readonly AskedReservation[], lapsesInMs: readonly number[], state: BatchState): Promise<boolean> {
    const [first] = asked;
    if (first === undefined || !this.#keysWithCapacity.has(first.keyId)) return false;
    const { keyId, limitNano, limitReset } = first;
    if (!asked.every((one) => one.keyId === keyId && one.limitNano === limitNano && one.limitReset === limitReset)) return false;
    const amounts = asked.map(({ amountNano }) => amountNano);
    const sum = amounts.reduce((all, amount) => all + amount, 0);
    // It would be rounded.
    if (!Number.isSafeInteger(sum)) return false;
    const ids = asked.map(({ callId }) => callId);
    try {
      const rows = await this.#query<{ fits: boolean }>(state, reserveTogether, [keyId, ids, amounts, lapsesInMs, sum, limitNano, limitReset ?? '']);
      return rows[0]?.fits === true;
    } catch (error) {
      if (sqlStateOf(error) !== UNIQUE_VIOLATION) throw error;
      return false;
    }
  }

  #settle(waiting: Waiting, outcome: string | undefined): void {
    const { asked, resolve, reject } = waiting;
    if (outcome === 'reserved') {
      this.#deps.metrics.add('reservations', { outcome: 'reserved' });
      resolve();
    } else if (outcome === 'no-row' && waiting.tries < MAX_TRIES) {
      waiting.tries += 1;
      this.#keysWithRow.delete(asked.keyId);
      this.#waiting.push(waiting);
    } else if (outcome === 'occupied' && waiting.occupiedTries < MAX_OCCUPIED_TRIES && !this.#isStopped) {
      waiting.occupiedTries += 1;
      this.#tryLater(waiting);
    } else {
      reject(this.#refusal());
    }
  }

  #tryLater(waiting: Waiting): void {
    this.#occupied.push(waiting);
    this.#occupiedTimer ??= setTimeout(() => {
      this.#occupiedTimer = null;
      this.#waiting.push(...this.#occupied.splice(0));
      this.#schedule();
    }, OCCUPIED_RETRY_MS);
  }

  async #releaseBatch(): Promise<void> {
    try {
      await within(this.#answerMs, this.#sendReleases(), () => {
        throw noAnswer();
      });
    } catch (error) {
      this.#deps.log.warn({ err: error, calls: this.#releases.size }, 'reservations of calls that were not sent could not be released yet');
      this.#releaseTimer = setTimeout(() => {
        this.#releaseTimer = null;
        this.#schedule();
      }, RELEASE_RETRY_MS);
      this.#releaseTimer.unref();
    }
  }

  async #sendReleases(): Promise<void> {
    const batch = [...this.#releases].slice(0, MAX_BATCH);
    await this.#deps.database.query(releaseCalls, [batch.map(([callId]) => callId), batch.map(([, keyId]) => keyId)]);
    for (const [callId] of batch) this.#releases.delete(callId);
    if (this.#releases.size > 0) this.#schedule();
  }

  #refusal(): SwitchyardError {
    this.#deps.metrics.add('reservations', { outcome: 'refused' });
    return new SwitchyardError(
      'router.payment_required',
      'The credit of this API key does not suffice for the most that the request may cost: allow it fewer tokens of output, or raise the limit of the key',
    );
  }

  #unavailable(cause: unknown): SwitchyardError {
    return new SwitchyardError('service.not_ready', 'Credit can not be checked now', { cause, details: { retryAfterMs: RETRY_AFTER_MS } });
  }
}

function noAnswer(): SwitchyardError {
  return new SwitchyardError('service.no_answer', 'the database did not answer in time');
}
