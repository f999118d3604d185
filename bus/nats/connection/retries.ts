import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { SlotMap } from '#shared/slot-map.ts';
import { pauseFor } from '../../pause.ts';
import { clusterPings } from '../pings.ts';
import { verdictOn } from './broker-errors.ts';
import { type Overlapping, overlapping } from './overlapping.ts';

/** The broker handles API requests one by one, and recovering a stream takes a while. */
export const API_TIMEOUT_MS = 5_000;
/** In a cluster, whose lost server replies no more while another has taken its place: an API request that is not answered is sent again. */
export const API_AGAIN_MS = 400;
/**
 * One attempt there of an API request that changes something. A server that comes back from a pause as the leader that it was takes all that was sent to it
 * meanwhile.
 */
export const CLUSTER_CHANGE_TIMEOUT_MS = 1_500;
/**
 * One attempt there to store a message: in this time a server that is lost without a word is given up, and the others say that there is no leader. A leader
 * that is slow has the message already. Each repetition would be one more entry of its log, and servers of nats-server 2.9 that are started again count
 * entries with one message id otherwise than the others.
 */
const CLUSTER_ATTEMPT_MS = (clusterPings.max + 1) * clusterPings.everyMs;
/** All requests of one attempt there to create a consumer. */
export const CLUSTER_CREATE_MS = 2_500;
/** Back-off, doubled up to the longest. */
export const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
/** In a cluster, which is back as soon as it has elected a leader. */
const CLUSTER_LONGEST_PAUSE_MS = 250;

export interface RetriesOptions {
  address: string;
  isCluster: boolean;
  isUp(): boolean;
  /** Resolves when there is a connection. Rejects when `until` aborts, or the link is closed. */
  up(until: AbortSignal): Promise<unknown>;
  /** Declares the streams. Never rejects. */
  redeclare(): Promise<void>;
}

type Attempt<Result> = (leftMs: number, isGivenUp: () => boolean) => Promise<Result>;

/** Retries of idempotent actions, within budgets of time. */
export class Retries {
  readonly #options: RetriesOptions;
  readonly #pending = new SlotMap<(reason: unknown) => void>();
  /** Actions in flight; `#idle` resolves at 0. */
  #running = 0;
  readonly #idle = new Set<() => void>();
  #isClosing = false;

  constructor(options: RetriesOptions) {
    this.#options = options;
  }

  /**
   * Until success, the end of the budget or a permanent error. The first attempt starts synchronously: calls keep their order.
   * @param action gets the time of the attempt, what is left of the budget, and whether the attempt was given up, since the connection was lost
   * @param until the result is no longer needed
   * @throws `bus.closed`, `bus.full`, `service.unreachable`, a permanent error, or the reason of `until`
   */
  run<Result>(
    what: string,
    budgetMs: number,
    action: (timeoutMs: number, leftMs: number, isGivenUp: () => boolean) => Promise<Result>,
    until: AbortSignal | null = null,
  ): Promise<Result> {
    if (this.#isClosing) return Promise.reject(closed());
    return this.#tryCounted(what, budgetMs, (leftMs, isGivenUp) => action(this.#attemptMs(leftMs), leftMs, isGivenUp), until);
  }

  /** The same for an action that bounds its attempts by itself: it gets what is left of the budget. */
  async runWithin<Result>(what: string, budgetMs: number, action: (leftMs: number) => Promise<Result>, until: AbortSignal | null = null): Promise<Result> {
    this.assertOpen();
    return this.#tryCounted(what, budgetMs, action, until);
  }

  /** The same for a request to JetStream's API that changes nothing, which in a cluster is sent again while it is not answered. */
  async callApi<Result>(what: string, budgetMs: number, call: () => Promise<Result>, until: AbortSignal | null = null): Promise<Result> {
    if (!this.#options.isCluster) return this.run(what, budgetMs, call, until);
    this.assertOpen();
    let requests: Overlapping<Result> | null = null;
    const attempt = (leftMs: number) => {
      requests?.end();
      requests = overlapping(call, API_AGAIN_MS, Math.min(leftMs, API_TIMEOUT_MS));
      return requests.answer;
    };
    try {
      return await this.#tryCounted(what, budgetMs, attempt, until);
    } finally {
      (requests as Overlapping<Result> | null)?.end();
    }
  }

  longestPauseMs(): number {
    return this.#options.isCluster ? CLUSTER_LONGEST_PAUSE_MS : LONGEST_PAUSE_MS;
  }

  /** Ends all attempts: they are repeated once there is a connection. */
  interrupt(reason: SwitchyardError): void {
    for (const reject of this.#pending.values()) reject(reason);
  }

  /** @throws `bus.closed` */
  assertOpen(): void {
    if (this.#isClosing) throw closed();
  }

  /** Refuses new actions, and waits for those in flight. */
  async close(): Promise<void> {
    this.#isClosing = true;
    if (this.#running > 0) await new Promise<void>((resolve) => this.#idle.add(resolve));
  }

  #attemptMs(leftMs: number): number {
    const longestMs = this.#options.isCluster ? CLUSTER_ATTEMPT_MS : API_TIMEOUT_MS;
    return Math.max(1, Math.min(longestMs, Math.ceil(leftMs)));
  }

  async #tryCounted<Result>(what: string, budgetMs: number, attempt: Attempt<Result>, until: AbortSignal | null): Promise<Result> {
    this.#running += 1;
    try {
      return await this.#tryUntilDone(what, performance.now() + budgetMs, attempt, until);
    } finally {
      this.#running -= 1;
      if (this.#running === 0) for (const wake of this.#idle) wake();
    }
  }

  async #tryUntilDone<Result>(what: string, untilMs: number, attempt: Attempt<Result>, until: AbortSignal | null): Promise<Result> {
    const { address, isUp } = this.#options;
    let last: unknown = null;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, this.longestPauseMs())) {
      const leftMs = untilMs - performance.now();
      if (!isUp() && leftMs > 0) await this.#upWithin(leftMs, until);
      until?.throwIfAborted();
      if (!isUp() || leftMs <= 0) {
        const cause = last ?? new SwitchyardError('service.unreachable', 'there is no connection');
        throw new SwitchyardError('service.unreachable', `NATS at ${address} did not ${what}`, { cause });
      }
      let isGivenUp = false;
      try {
        return await this.#whileUp(
          attempt(leftMs, () => isGivenUp),
          until,
        );
      } catch (error) {
        isGivenUp = true;
        const verdict = verdictOn(error);
        if (verdict === 'full') throw new SwitchyardError('bus.full', `NATS has no space to ${what}`, { cause: error });
        if (verdict === 'never') throw error;
        last = error;
        if (verdict === 'missing') await this.#declared();
        await pauseFor(Math.max(0, Math.min(pauseMs, untilMs - performance.now())), until);
      }
    }
  }

  /** In a cluster the stream most likely has no leader: its election is not waited for with those of all others. */
  async #declared(): Promise<void> {
    const { redeclare, isCluster } = this.#options;
    const declared = redeclare();
    if (!isCluster) await declared;
  }

  /** Rejects when the link goes down or `until` aborts. */
  #whileUp<Result>(reply: Promise<Result>, until: AbortSignal | null): Promise<Result> {
    return new Promise((resolve, reject) => {
      let isOver = false;
      // The reply of an attempt that was given up may never come.
      const end = () => {
        if (isOver) return;
        isOver = true;
        this.#pending.remove(slot);
        until?.removeEventListener('abort', giveUp);
      };
      const fail = (reason: unknown) => {
        end();
        reject(reason);
      };
      const giveUp = () => fail(until?.reason);
      const slot = this.#pending.add(fail);
      until?.addEventListener('abort', giveUp);
      reply.then((result) => {
        end();
        resolve(result);
      }, fail);
    });
  }

  /**
   * Never rejects. A timer of its own: Node 20 may collect composed signals (AbortSignal.any, AbortSignal.timeout) that are waited for, and they never fire.
   */
  async #upWithin(ms: number, until: AbortSignal | null): Promise<void> {
    const over = new AbortController();
    const end = () => over.abort();
    const timer = setTimeout(end, ms);
    until?.addEventListener('abort', end);
    if (until?.aborted) end();
    await this.#options.up(over.signal).catch(() => {});
    clearTimeout(timer);
    until?.removeEventListener('abort', end);
  }
}

export function closed(): SwitchyardError {
  return new SwitchyardError('bus.closed', 'the bus is closed');
}
