import { setMaxListeners } from 'node:events';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { type NatsConnection, PermissionViolationError, type Status } from '@nats-io/transport-node';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { SlotMap } from '#shared/slot-map.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Subscription } from '../../bus.ts';
import { pauseFor } from '../../pause.ts';
import { verdictOn } from './broker-errors.ts';
import { type Account, addressesOf, dial, inboxPrefixOf } from './dial.ts';
import { Requests } from './requests.ts';

/** The broker handles API requests one by one, and recovering a stream takes a while. */
const API_TIMEOUT_MS = 5_000;
/** One attempt in a cluster, whose lost server replies no more while another has taken its place. */
const CLUSTER_ATTEMPT_MS = 1_000;
/** The same for requests that all servers of the cluster have a part in. */
const CLUSTER_API_TIMEOUT_MS = 1_500;
/** The last attempt of a budget: for a cluster that is slow rather than without a leader. */
const LAST_ATTEMPT_MS = 2_500;
/** Back-off, doubled up to the longest. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
/** In a cluster, which is back as soon as it has elected a leader. */
const CLUSTER_LONGEST_PAUSE_MS = 250;
const FLUSH_TIMEOUT_MS = 2_000;
/**
 * Wait between finding a stream missing and creating it. nats-server 2.9 reports a deletion before it has removed the files, and then removes a new stream's
 * with them: what that has acknowledged is lost.
 */
const DELETION_SETTLES_MS = 1_500;

/** When each stream was created, by name: another time is another stream. */
export type StreamIdentities = ReadonlyMap<string, string>;

export interface LinkOptions extends Account {
  connectBudgetMs: number;
  log: Log;
  /** Called after each connect, before the link is up. @param beforeCreating awaited before a missing stream is created @returns identities of the streams */
  declare(manager: JetStreamManager, beforeCreating?: () => Promise<void>): Promise<StreamIdentities>;
}

/**
 * The two connections of a process:
 *
 *   opening ──declared──▶ up ──main connection lost──▶ down ──connected──▶ declaring ──declared──▶ up
 *
 * Each up period is a session with an AbortSignal: consumers and pulls end with it, and are made anew in the next. Tokens have their own connection, which
 * recovers by itself: a stalled token reader blocks nothing else.
 */
export class NatsLink {
  readonly main: NatsConnection;
  readonly tokens: NatsConnection;
  readonly manager: JetStreamManager;
  readonly requests: Requests;
  /** On the connection of tokens: a request leaves before the frames that are published after it. */
  readonly tokenRequests: Requests;
  readonly address: string;
  /** Several servers are given: when one is lost, the others go on. */
  readonly isCluster: boolean;
  readonly inboxPrefix: string;
  readonly #options: LinkOptions;
  /** The current session; null while not up. */
  #up: AbortController | null = null;
  #tokensUp = true;
  #wasAway = false;
  /** A recovery stops when a further disconnect is counted. */
  #disconnects = 0;
  #closing = false;
  #closed = false;
  #redeclaring: Promise<void> | null = null;
  /** As they were last declared. */
  #streams: StreamIdentities = new Map();
  readonly #waiting = new Set<() => void>();
  readonly #pending = new SlotMap<(reason: unknown) => void>();
  /** Retried actions in flight; `#idle` resolves at 0. */
  #running = 0;
  readonly #idle = new Set<() => void>();
  readonly #listeners = new Set<() => void>();
  readonly #redeclareListeners = new Set<() => void>();

  /** @throws `service.unreachable` */
  static async open(options: LinkOptions): Promise<NatsLink> {
    const untilMs = performance.now() + options.connectBudgetMs;
    const name = options.user ?? 'switchyard';
    const opening = await Promise.allSettled([dial(options, name, options.connectBudgetMs), dial(options, `${name} tokens`, options.connectBudgetMs)]);
    const [main, tokens] = opening;
    const connections = opening.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    try {
      if (main.status === 'rejected') throw main.reason;
      if (tokens.status === 'rejected') throw tokens.reason;
      const timeout = addressesOf(options.servers).length > 1 ? CLUSTER_API_TIMEOUT_MS : API_TIMEOUT_MS;
      const link = new NatsLink(options, main.value, tokens.value, await jetstreamManager(main.value, { checkAPI: false, timeout }));
      await link.#begin(untilMs);
      return link;
    } catch (error) {
      await Promise.all(connections.map((connection) => connection.close()));
      throw error;
    }
  }

  private constructor(options: LinkOptions, main: NatsConnection, tokens: NatsConnection, manager: JetStreamManager) {
    this.#options = options;
    this.main = main;
    this.tokens = tokens;
    this.manager = manager;
    const addresses = addressesOf(options.servers);
    this.address = addresses.join(', ');
    this.isCluster = addresses.length > 1;
    this.inboxPrefix = inboxPrefixOf(options.user);
    this.requests = new Requests(main, this.inboxPrefix);
    this.tokenRequests = new Requests(tokens, this.inboxPrefix);
  }

  /** Both connections are usable. */
  get isReady(): boolean {
    return this.#up !== null && this.#tokensUp;
  }

  get isUp(): boolean {
    return this.#up !== null;
  }

  get areTokensUp(): boolean {
    return this.#tokensUp && !this.#closed;
  }

  /** Waits for the main connection; resolves with its session. @throws `bus.closed`, or the reason of `until` */
  async up(until: AbortSignal): Promise<AbortSignal> {
    while (this.#up === null) {
      if (this.#closed) throw closed();
      until.throwIfAborted();
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#waiting.delete(wake);
          until.removeEventListener('abort', wake);
          resolve();
        };
        this.#waiting.add(wake);
        until.addEventListener('abort', wake);
      });
    }
    return this.#up.signal;
  }

  /**
   * Retries an idempotent action until success, the end of the budget or a permanent error. The first attempt starts synchronously: calls keep their order.
   * @param until the result is no longer needed
   * @throws `bus.closed`, `bus.full`, `service.unreachable`, a permanent error, or the reason of `until`
   */
  retryWhileTransient<Result>(
    what: string,
    budgetMs: number,
    action: (timeoutMs: number) => Promise<Result>,
    until: AbortSignal | null = null,
  ): Promise<Result> {
    return this.#closing ? Promise.reject(closed()) : this.#retryCounted(what, budgetMs, action, until);
  }

  onReconnect(handler: () => void): Subscription {
    const listener = () => handler();
    this.#listeners.add(listener);
    return {
      stop: async () => {
        this.#listeners.delete(listener);
      },
    };
  }

  /**
   * Called after a stream was found to be another one on a live connection: its consumers are lost.
   * @returns removes the handler
   */
  onRedeclare(handler: () => void): () => void {
    this.#redeclareListeners.add(handler);
    return () => void this.#redeclareListeners.delete(handler);
  }

  /** @throws `bus.closed` */
  assertOpen(): void {
    if (this.#closing) throw closed();
  }

  /** Refuses new actions, waits for those in flight and for publishes, and closes. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#running > 0) await new Promise<void>((resolve) => this.#idle.add(resolve));
    this.#closed = true;
    if (this.isReady) await Promise.race([Promise.allSettled([this.main.flush(), this.tokens.flush()]), pauseFor(FLUSH_TIMEOUT_MS)]);
    this.#goDown();
    for (const wake of this.#waiting) wake();
    await Promise.all([this.main.close(), this.tokens.close()]);
  }

  async #begin(untilMs: number): Promise<void> {
    void this.#watch(this.main, (type) => (type === 'disconnect' ? this.#onLost() : this.#onFound()));
    void this.#watch(this.tokens, (type) => {
      this.#tokensUp = type === 'reconnect';
      if (this.#tokensUp) return this.#announce();
      this.#wasAway = true;
      this.tokenRequests.end(lostMeanwhile());
    });
    for (;;) {
      const trouble = await Promise.race([this.#declare().catch((error: unknown) => error), pauseFor(untilMs - performance.now()).then(() => 'late')]);
      // Lost again: `#watch` recovers it.
      if (trouble === undefined && this.#disconnects === 0) this.#goUp();
      if (trouble === undefined) return;
      if (isRefusedStream(trouble)) throw trouble;
      const isLate = trouble === 'late' || performance.now() + FIRST_PAUSE_MS > untilMs;
      if (isLate || verdictOn(trouble) === 'never' || verdictOn(trouble) === 'full') {
        throw new SwitchyardError('service.unreachable', `NATS at ${this.address} is there, but the streams could not be declared`, { cause: trouble });
      }
      await pauseFor(FIRST_PAUSE_MS);
    }
  }

  /** Never rejects; runs as long as the connection. */
  async #watch(connection: NatsConnection, onChange: (type: 'disconnect' | 'reconnect') => void): Promise<void> {
    let connected = true;
    for await (const status of connection.status()) {
      if (status.type === 'disconnect' || status.type === 'reconnect') {
        const isConnected = status.type === 'reconnect';
        // Each refused reconnect reports a disconnect.
        if (isConnected === connected || this.#closed) continue;
        connected = isConnected;
        this.#options.log.warn({ address: this.address }, isConnected ? 'NATS is back' : 'the connection to NATS is lost');
        onChange(status.type);
      } else this.#report(status);
    }
    if (this.#closed) return;
    // Unexpected, since it reconnects forever: report not ready.
    this.#options.log.error({ address: this.address }, 'a connection to NATS has ended for good');
    onChange('disconnect');
  }

  #report(status: Status): void {
    if (status.type === 'error') {
      this.#options.log.error({ err: status.error, address: this.address }, 'NATS reported an error');
      if (!(status.error instanceof PermissionViolationError)) return;
      this.requests.refuse(status.error);
      this.tokenRequests.refuse(status.error);
    } else if (status.type === 'slowConsumer' || status.type === 'staleConnection' || status.type === 'ldm') {
      this.#options.log.warn({ address: this.address, status: status.type }, 'NATS reported trouble with a connection');
    }
  }

  #onLost(): void {
    this.#disconnects += 1;
    this.#wasAway = true;
    this.#goDown();
  }

  #onFound(): void {
    void this.#recover(this.#disconnects);
  }

  /** A restarted broker has lost its memory streams: declare before use. Never rejects. */
  async #recover(disconnects: number): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; disconnects === this.#disconnects && !this.#closed; pauseMs = Math.min(pauseMs * 2, this.#longestPauseMs)) {
      try {
        await this.#declare();
        if (disconnects === this.#disconnects && !this.#closed) this.#goUp();
        return;
      } catch (error) {
        if (disconnects !== this.#disconnects || this.#closed) return;
        this.#options.log.warn({ err: error, address: this.address, pause_ms: pauseMs }, 'the streams could not be declared yet');
        await pauseFor(pauseMs);
      }
    }
  }

  async #declare(beforeCreating?: () => Promise<void>): Promise<void> {
    this.#streams = await this.#options.declare(this.manager, beforeCreating);
  }

  get #longestPauseMs(): number {
    return this.isCluster ? CLUSTER_LONGEST_PAUSE_MS : LONGEST_PAUSE_MS;
  }

  #attemptMs(leftMs: number): number {
    if (!this.isCluster) return API_TIMEOUT_MS;
    return leftMs > CLUSTER_ATTEMPT_MS + LAST_ATTEMPT_MS ? CLUSTER_ATTEMPT_MS : LAST_ATTEMPT_MS;
  }

  #goUp(): void {
    this.#up = new AbortController();
    setMaxListeners(0, this.#up.signal); // one per reader
    for (const wake of this.#waiting) wake();
    this.#announce();
  }

  #goDown(): void {
    this.#up?.abort(new SwitchyardError('service.unreachable', 'the connection to NATS is lost'));
    this.#up = null;
    const lost = lostMeanwhile();
    for (const reject of this.#pending.values()) reject(lost);
    this.requests.end(lost);
  }

  #announce(): void {
    if (!this.#wasAway || !this.isReady) return;
    this.#wasAway = false;
    for (const listener of this.#listeners) {
      try {
        listener();
      } catch (error) {
        this.#options.log.error({ err: error }, 'a handler of reconnects threw');
      }
    }
  }

  async #retryCounted<Result>(what: string, budgetMs: number, action: (timeoutMs: number) => Promise<Result>, until: AbortSignal | null): Promise<Result> {
    this.#running += 1;
    try {
      return await this.#tryUntilDone(what, performance.now() + budgetMs, action, until);
    } finally {
      this.#running -= 1;
      if (this.#running === 0) for (const wake of this.#idle) wake();
    }
  }

  async #tryUntilDone<Result>(what: string, untilMs: number, action: (timeoutMs: number) => Promise<Result>, until: AbortSignal | null): Promise<Result> {
    let last: unknown = null;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, this.#longestPauseMs)) {
      const leftMs = untilMs - performance.now();
      if (this.#up === null && leftMs > 0) await this.#upWithin(leftMs, until);
      until?.throwIfAborted();
      if (this.#up === null || leftMs <= 0) {
        const cause = last ?? new SwitchyardError('service.unreachable', 'there is no connection');
        throw new SwitchyardError('service.unreachable', `NATS at ${this.address} did not ${what}`, { cause });
      }
      try {
        return await this.#whileUp(action(Math.max(1, Math.min(this.#attemptMs(leftMs), Math.ceil(leftMs)))), until);
      } catch (error) {
        const verdict = verdictOn(error);
        if (verdict === 'full') throw new SwitchyardError('bus.full', `NATS has no space to ${what}`, { cause: error });
        if (verdict === 'never') throw error;
        last = error;
        if (verdict === 'missing') await this.#redeclare();
        await pauseFor(Math.max(0, Math.min(pauseMs, untilMs - performance.now())), until);
      }
    }
  }

  /** Rejects when the link goes down or `until` aborts. */
  #whileUp<Result>(reply: Promise<Result>, until: AbortSignal | null): Promise<Result> {
    return new Promise((resolve, reject) => {
      const giveUp = () => reject(until?.reason);
      const end = () => {
        this.#pending.remove(slot);
        until?.removeEventListener('abort', giveUp);
      };
      const slot = this.#pending.add(reject);
      until?.addEventListener('abort', giveUp);
      reply.then(
        (result) => {
          end();
          resolve(result);
        },
        (error) => {
          end();
          reject(error);
        },
      );
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
    await this.up(over.signal).catch(() => {});
    clearTimeout(timer);
    until?.removeEventListener('abort', end);
  }

  /** A stream was deleted in use, or has no leader at this moment. Concurrent callers share one declaration. Never rejects. */
  #redeclare(): Promise<void> {
    const before = this.#streams;
    this.#redeclaring ??= this.#declare(() => pauseFor(DELETION_SETTLES_MS))
      .then(() => {
        if ([...this.#streams].every(([name, created]) => before.get(name) === created)) return;
        for (const handler of [...this.#redeclareListeners]) handler();
      })
      .catch((error) => this.#options.log.warn({ err: error, address: this.address }, 'a stream is missing and could not be declared'))
      .finally(() => {
        this.#redeclaring = null;
      });
    return this.#redeclaring;
  }
}

/** Permanent, with a message of its own. */
function isRefusedStream(error: unknown): error is SwitchyardError {
  return error instanceof SwitchyardError && error.code === 'bus.stream_refused';
}

function lostMeanwhile(): SwitchyardError {
  return new SwitchyardError('service.unreachable', 'the connection to NATS was lost meanwhile');
}

function closed(): SwitchyardError {
  return new SwitchyardError('bus.closed', 'the bus is closed');
}
