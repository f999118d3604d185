import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { Log } from '../telemetry/log.ts';
import { within } from '../within.ts';
import type { CallerKey } from './caller-key.ts';

/** A flood of wrong keys is a flood of look-ups: beyond it they are refused. */
const MAX_WAITING = 2_000;
/** One indexed statement; a database that is slower does not serve requests. */
const TIMEOUT_MS = 2_000;
/** Between two tries while the database does not answer. */
const RETRY_MS = 1_000;

/** The result of one look-up. */
interface Found {
  /** Null: there is none. */
  key: CallerKey | null;
  /** False: the key was changed meanwhile, so the result must not be cached. */
  isCurrent: boolean;
}

interface Waiting {
  promise: Promise<Found>;
  resolve(found: Found): void;
  reject(error: Error): void;
  isCurrent: boolean;
}

export interface KeyLookUpsDeps {
  /** Rows with one of the hashes. */
  read(hashes: readonly string[]): Promise<CallerKey[]>;
  log: Log;
  /** Monotonic. */
  nowMs(): number;
  maxWaiting?: number;
  timeoutMs?: number;
}

/**
 * Looks up keys with one statement at a time, whatever the number of requests: those that come meanwhile are the next statement's. While the database does not
 * answer, look-ups are refused at once, and one a second is tried.
 */
export class KeyLookUps {
  readonly #deps: KeyLookUpsDeps;
  readonly #maxWaiting: number;
  readonly #timeoutMs: number;
  /** For the next statement. */
  #waiting = new Map<string, Waiting>();
  /** Of the statement in flight. */
  #sent = new Map<string, Waiting>();
  #isRunning = false;
  #retryAtMs = Number.NEGATIVE_INFINITY;
  #isAway = false;

  constructor(deps: KeyLookUpsDeps) {
    this.#deps = deps;
    this.#maxWaiting = deps.maxWaiting ?? MAX_WAITING;
    this.#timeoutMs = deps.timeoutMs ?? TIMEOUT_MS;
  }

  /** Whether the last look-up failed. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** Whether a look-up would reach the database now. */
  get mayTry(): boolean {
    return !this.#isAway || (!this.#isRunning && this.#deps.nowMs() >= this.#retryAtMs);
  }

  /** @throws, or rejects with, `service.not_ready` without an answer of the database; `service.overloaded` while too many look-ups wait */
  find(hash: string): Promise<Found> {
    const same = this.#waiting.get(hash) ?? this.#sent.get(hash);
    if (same?.isCurrent === true) return same.promise;
    if (!this.mayTry) throw notReady();
    if (this.#waiting.size >= this.#maxWaiting) throw overloaded();
    const waiting = newWaiting();
    this.#waiting.set(hash, waiting);
    if (!this.#isRunning) void this.#run();
    return waiting.promise;
  }

  /** The key was changed: what is in flight was read before, perhaps. */
  outdate(hash: string): void {
    const sent = this.#sent.get(hash);
    if (sent !== undefined) sent.isCurrent = false;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.size > 0) {
      this.#sent = this.#waiting;
      this.#waiting = new Map();
      const reading = this.#deps.read([...this.#sent.keys()]);
      try {
        this.#settle(await within(this.#timeoutMs, reading, timedOut));
      } catch (error) {
        this.#fail(error);
        // Its connection is in use until then: a second statement would wait like it.
        await reading.catch(() => {});
      }
    }
    this.#isRunning = false;
  }

  #settle(keys: readonly CallerKey[]): void {
    const found = new Map(keys.map((key) => [key.hash, key]));
    for (const [hash, { resolve, isCurrent }] of this.#sent) resolve({ key: found.get(hash) ?? null, isCurrent });
    this.#sent = new Map();
    if (this.#isAway) this.#deps.log.info({}, 'keys can be looked up in the database again');
    this.#isAway = false;
  }

  #fail(error: unknown): void {
    if (!this.#isAway) this.#deps.log.warn({ err: error }, 'keys cannot be looked up in the database: those that are cached are served');
    this.#isAway = true;
    this.#retryAtMs = this.#deps.nowMs() + RETRY_MS;
    const refused = [...this.#sent.values(), ...this.#waiting.values()];
    this.#sent = new Map();
    this.#waiting = new Map();
    for (const { reject } of refused) reject(notReady());
  }
}

function newWaiting(): Waiting {
  let resolve: Waiting['resolve'] = () => {};
  let reject: Waiting['reject'] = () => {};
  const promise = new Promise<Found>((onFound, onError) => {
    resolve = onFound;
    reject = onError;
  });
  return { promise, resolve, reject, isCurrent: true };
}

function timedOut(): never {
  throw new SwitchyardError('service.unreachable', 'the database did not answer in time');
}

/** Without a cause: it would be logged for each request. */
function notReady(): SwitchyardError {
  return new SwitchyardError('service.not_ready', 'The API key could not be checked: the database of keys cannot be reached', {
    details: { retryAfterMs: RETRY_MS },
  });
}

function overloaded(): SwitchyardError {
  return new SwitchyardError('service.overloaded', 'The API key could not be checked: too many keys are being looked up', {
    details: { retryAfterMs: RETRY_MS },
  });
}
