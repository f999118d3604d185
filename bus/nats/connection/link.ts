import { setMaxListeners } from 'node:events';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { type NatsConnection, PermissionViolationError, type Status } from '@nats-io/transport-node';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Subscription } from '../../bus.ts';
import { pauseFor } from '../../pause.ts';
import { isRefusal, verdictOn } from './broker-errors.ts';
import { Consumers } from './consumers.ts';
import { type Declare, DeclaredStreams } from './declared-streams.ts';
import { type Account, addressesOf, dial, inboxPrefixOf } from './dial.ts';
import { electionMsOf } from './election-time.ts';
import { refusedCredentials } from './refused-credentials.ts';
import { Requests } from './requests.ts';
import { API_TIMEOUT_MS, CLUSTER_CHANGE_TIMEOUT_MS, closed, FIRST_PAUSE_MS, Retries } from './retries.ts';

const FLUSH_TIMEOUT_MS = 2_000;

export interface LinkOptions extends Account {
  connectBudgetMs: number;
  log: Log;
  /** Called after each connect. */
  declare: Declare;
  /** How long a cluster counts as ready after a reconnect while its streams are looked up; absent: as long as its user's processes may. */
  electionMs?: number;
}

/** Must not throw. */
interface TokenHandlers {
  /** The connection of tokens is lost, or about to be left. May be called again before `back`. */
  away(): void;
  /** Both connections are there. May be called though nothing was away. */
  back(): void;
}

/**
 * The two connections of a process:
 *
 *   opening ──declared──▶ up ──main connection lost──▶ down ──connected──▶ declaring ──declared──▶ up
 *
 * In a cluster the streams outlast the server that was lost, and each of those that it led has no leader until its election is over. So there the link is up
 * as soon as it is connected, and ready too where nothing is lost by that (`election-time.ts`):
 *
 *   down ──connected──▶ up, declaring ──declared──▶ up
 *
 * Each up period is a session with an AbortSignal: consumers and pulls end with it, and are made anew in the next. Tokens have their own connection, which
 * recovers by itself: a stalled token reader blocks nothing else.
 */
export class NatsLink {
  readonly main: NatsConnection;
  readonly tokens: NatsConnection;
  /** For requests that change nothing. */
  readonly manager: JetStreamManager;
  /** For those that change something: in a cluster they are given up sooner, and never overlap. */
  readonly changes: JetStreamManager;
  readonly requests: Requests;
  readonly retries: Retries;
  readonly consumers: Consumers;
  readonly streams: DeclaredStreams;
  /** On the connection of tokens: a request leaves before the frames that are published after it. */
  readonly tokenRequests: Requests;
  readonly address: string;
  /** Several servers are given: when one is lost, the others go on. */
  readonly isCluster: boolean;
  readonly inboxPrefix: string;
  readonly #options: LinkOptions;
  /** The current session; null while not up. */
  #up: AbortController | null = null;
  /** Since the main connection was lost, if it was. */
  #isDeclared = false;
  /** By `performance.now()`. */
  #upSinceMs = 0;
  #sessions = 0;
  #tokensUp = true;
  #tokenLosses = 0;
  #wasAway = false;
  /** A recovery stops when a further disconnect is counted. */
  #disconnects = 0;
  #closed = false;
  readonly #waiting = new Set<() => void>();
  readonly #listeners = new Set<() => void>();
  /** For publishes on the main connection that the broker has refused. */
  readonly #violations = new Set<(violation: PermissionViolationError) => void>();
  #onTokens: TokenHandlers = { away: () => {}, back: () => {} };

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
      const changeTimeoutMs = addressesOf(options.servers).length > 1 ? CLUSTER_CHANGE_TIMEOUT_MS : API_TIMEOUT_MS;
      const [manager, changes] = [
        await jetstreamManager(main.value, { checkAPI: false, timeout: API_TIMEOUT_MS }),
        await jetstreamManager(main.value, { checkAPI: false, timeout: changeTimeoutMs }),
      ];
      const link = new NatsLink(options, { main: main.value, tokens: tokens.value }, { manager, changes });
      await link.#begin(untilMs);
      return link;
    } catch (error) {
      await Promise.all(connections.map((connection) => connection.close()));
      throw error;
    }
  }

  private constructor(options: LinkOptions, { main, tokens }: Pick<NatsLink, 'main' | 'tokens'>, { manager, changes }: Pick<NatsLink, 'manager' | 'changes'>) {
    this.#options = options;
    this.main = main;
    this.tokens = tokens;
    this.manager = manager;
    this.changes = changes;
    const addresses = addressesOf(options.servers);
    this.address = addresses.join(', ');
    this.isCluster = addresses.length > 1;
    this.inboxPrefix = inboxPrefixOf(options.user);
    this.requests = new Requests(main, this.inboxPrefix);
    this.tokenRequests = new Requests(tokens, this.inboxPrefix);
    const { address, isCluster } = this;
    this.streams = new DeclaredStreams({ manager, changes, isCluster, declare: options.declare, address, log: options.log });
    const isUp = () => this.isUp;
    this.retries = new Retries({ address, isCluster, isUp, up: (until) => this.up(until), redeclare: () => this.#redeclare() });
    this.consumers = new Consumers({ isCluster, manager, requests: this.requests });
  }

  /** Both connections are usable, and the streams are there; in a cluster they may still be looked up for the time of an election. */
  get isReady(): boolean {
    if (this.#up === null || !this.#tokensUp) return false;
    return this.#isDeclared || performance.now() - this.#upSinceMs < (this.#options.electionMs ?? electionMsOf(this.#options.user));
  }

  /** The streams were looked up since the main connection was last lost. */
  get areStreamsKnown(): boolean {
    return this.#isDeclared;
  }

  /** Of a cluster the streams may not be looked up yet since the connection was lost. */
  get isUp(): boolean {
    return this.#up !== null;
  }

  /** Of the current session; null while not up. */
  get sessionNumber(): number | null {
    return this.isUp ? this.#sessions : null;
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

  onReconnect(handler: () => void): Subscription {
    const listener = () => handler();
    this.#listeners.add(listener);
    return {
      stop: async () => {
        this.#listeners.delete(listener);
      },
    };
  }

  /** @param handler gets what the broker has refused; must not throw */
  onPermissionViolation(handler: (violation: PermissionViolationError) => void): void {
    this.#violations.add(handler);
  }

  onTokens(handlers: TokenHandlers): void {
    this.#onTokens = handlers;
  }

  /** Refuses new actions, waits for those in flight and for publishes, and closes. */
  async close(): Promise<void> {
    await this.retries.close();
    this.#closed = true;
    if (this.isUp && this.#tokensUp) await Promise.race([Promise.allSettled([this.main.flush(), this.tokens.flush()]), pauseFor(FLUSH_TIMEOUT_MS)]);
    this.#goDown();
    for (const wake of this.#waiting) wake();
    await Promise.all([this.main.close(), this.tokens.close()]);
  }

  async #begin(untilMs: number): Promise<void> {
    void this.#watch(this.main, (type) => (type === 'disconnect' ? this.#onLost() : this.#onFound()));
    void this.#watch(
      this.tokens,
      (type) => (type === 'disconnect' ? this.#onTokensLost() : this.#onTokensFound()),
      () => void this.#moveTokens(),
    );
    for (;;) {
      const trouble = await Promise.race([this.streams.declare().catch((error: unknown) => error), pauseFor(untilMs - performance.now()).then(() => 'late')]);
      // Lost again: `#watch` recovers it.
      if (trouble === undefined && this.#disconnects === 0) this.#onDeclared();
      if (trouble === undefined) return;
      if (isRefusedStream(trouble)) throw trouble;
      const isLate = trouble === 'late' || performance.now() + FIRST_PAUSE_MS > untilMs;
      if (isLate || verdictOn(trouble) === 'never' || verdictOn(trouble) === 'full') {
        throw new SwitchyardError('service.unreachable', `NATS at ${this.address} is there, but the streams could not be declared`, { cause: trouble });
      }
      await pauseFor(FIRST_PAUSE_MS);
    }
  }

  /** Never rejects; runs as long as the connection. @param onLeaving its server is about to close it (lame duck mode) */
  async #watch(connection: NatsConnection, onChange: (type: 'disconnect' | 'reconnect') => void, onLeaving = () => {}): Promise<void> {
    let connected = true;
    let isRefused = false;
    for await (const status of connection.status()) {
      if (status.type === 'disconnect' || status.type === 'reconnect') {
        const isConnected = status.type === 'reconnect';
        // Each refused reconnect reports a disconnect.
        if (isConnected === connected || this.#closed) continue;
        connected = isConnected;
        isRefused = false;
        this.#options.log.warn({ address: this.address }, isConnected ? 'NATS is back' : 'the connection to NATS is lost');
        onChange(status.type);
      } else if (status.type === 'error' && isRefusal(status.error)) {
        // Each attempt to connect again is refused: one line.
        if (!isRefused) this.#options.log.error({ err: refusedCredentials(this.#options.user, this.address, status.error) }, 'NATS refuses this process');
        isRefused = true;
      } else {
        this.#report(status);
        if (status.type === 'ldm') onLeaving();
      }
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
      for (const handler of this.#violations) handler(status.error);
    } else if (status.type === 'slowConsumer' || status.type === 'staleConnection' || status.type === 'ldm') {
      this.#options.log.warn({ address: this.address, status: status.type }, 'NATS reported trouble with a connection');
    }
  }

  /**
   * To another server before this one ends: a server that closes a connection drops what it has not read yet, and nothing answers for frames. They wait until
   * all that was sent is confirmed and the other server is there. Never rejects.
   */
  async #moveTokens(): Promise<void> {
    if (!this.isCluster || !this.#tokensUp) return;
    this.#onTokensLost();
    const losses = this.#tokenLosses;
    await Promise.race([this.tokens.flush().catch(() => {}), pauseFor(FLUSH_TIMEOUT_MS)]);
    if (losses === this.#tokenLosses && !this.#closed) await this.tokens.reconnect().catch(() => {});
  }

  #onTokensLost(): void {
    this.#tokenLosses += 1;
    this.#tokensUp = false;
    this.#wasAway = true;
    this.#onTokens.away();
    this.tokenRequests.end(lostMeanwhile());
  }

  #onTokensFound(): void {
    this.#tokensUp = true;
    this.#sendHeld();
    this.#announce();
  }

  /** Frames that were held, once both connections are back: usage records, which wait for the main one, are sent first. */
  #sendHeld(): void {
    const areBack = () => this.#tokensUp && this.isUp;
    if (!areBack()) return;
    setImmediate(() => {
      if (areBack()) this.#onTokens.back();
    });
  }

  #onLost(): void {
    this.#disconnects += 1;
    this.#wasAway = true;
    this.#goDown();
  }

  #onFound(): void {
    if (this.isCluster && !this.#closed) this.#goUp();
    void this.#recover(this.#disconnects);
  }

  /** Creations never overlap: until the streams are declared after a reconnect, `#recover` does it. Never rejects. */
  #redeclare(): Promise<void> {
    return this.#isDeclared ? this.streams.redeclare() : Promise.resolve();
  }

  /** A restarted broker has lost its memory streams: declare before use, where it is a single one. Never rejects. */
  async #recover(disconnects: number): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; disconnects === this.#disconnects && !this.#closed; pauseMs = Math.min(pauseMs * 2, this.retries.longestPauseMs())) {
      try {
        await this.streams.declareInUse();
        if (disconnects === this.#disconnects && !this.#closed) this.#onDeclared();
        return;
      } catch (error) {
        if (disconnects !== this.#disconnects || this.#closed) return;
        this.#options.log.warn({ err: error, address: this.address, pause_ms: pauseMs }, 'the streams could not be declared yet');
        await pauseFor(pauseMs);
      }
    }
  }

  #goUp(): void {
    this.#up = new AbortController();
    this.#sessions += 1;
    this.#upSinceMs = performance.now();
    setMaxListeners(0, this.#up.signal); // one per reader
    for (const wake of this.#waiting) wake();
    this.#sendHeld();
  }

  #onDeclared(): void {
    this.#isDeclared = true;
    if (!this.isUp) this.#goUp();
    this.#announce();
  }

  #goDown(): void {
    this.#isDeclared = false;
    this.#up?.abort(new SwitchyardError('service.unreachable', 'the connection to NATS is lost'));
    this.#up = null;
    const lost = lostMeanwhile();
    this.retries.interrupt(lost);
    this.requests.end(lost);
  }

  #announce(): void {
    if (!this.#wasAway || !this.isReady || !this.#isDeclared) return;
    this.#wasAway = false;
    for (const listener of this.#listeners) {
      try {
        listener();
      } catch (error) {
        this.#options.log.error({ err: error }, 'a handler of reconnects threw');
      }
    }
  }
}

/** Permanent, with a message of its own. */
function isRefusedStream(error: unknown): error is SwitchyardError {
  return error instanceof SwitchyardError && error.code === 'bus.stream_refused';
}

function lostMeanwhile(): SwitchyardError {
  return new SwitchyardError('service.unreachable', 'the connection to NATS was lost meanwhile');
}
