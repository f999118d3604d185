import type { Bus, Subscription } from '#bus/bus.ts';
import { type Heartbeat, heartbeat, type InterestReply } from '#bus/messages/heartbeat.ts';
import { abortOf, resumptionOf } from '#bus/received-aborts.ts';
import { addresses, patternOf, subjectOf } from '#bus/subjects.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { LoopLateness } from '#shared/lifecycle/loop-lateness.ts';
import { ObjectMap } from '#shared/object-map.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { GatewayLimits } from '../limits.ts';

/** Subscriber to the frames of one call. No function throws. */
export interface CallReader {
  readonly frames: { receive(frame: Uint8Array): void };
  /** A heartbeat of a worker that has the call. @param attempt null: it does not say which */
  onBeat(attempt: number | null): void;
  /** The bus reconnected: frames and heartbeats may have been lost. */
  onLoss(): void;
  onEnd(error: SwitchyardError): void;
}

/**
 * How a reader releases a call.
 *
 *   over       the call has ended, or must not be aborted
 *   left       the client has left: the call is aborted unless it has another reader
 *   dropped    we cut the connection: the call stays resumable for a while
 *   withdrawn  the client was told that the call is not made: it is aborted unless it has another reader, also when it is detached
 *
 * A worker does not follow the abort of a detached call whose readers have left: a gateway where one resumed does not know that it is detached.
 */
export type ReleaseReason = 'over' | 'left' | 'dropped' | 'withdrawn';

export interface CallSubscription {
  /** Resolves once the subscription is active. */
  ready(): Promise<void>;
  release(how: ReleaseReason): void;
}

const NO_READERS: readonly CallReader[] = [];

interface Deps {
  bus: Bus;
  /** Never a number: workers publish frames on `tok.<origin>.<call>`. */
  origin: string;
  log: Log;
  limits: GatewayLimits;
}

/**
 * Readers of all calls of a gateway. One standing subscription gets the frames of its own calls: an interest change per call would reach
 * every broker. A call of another gateway that is resumed here has its own subscription. Also answers workers' heartbeats with the calls
 * that have interest.
 */
export class CallReaders {
  readonly origin: string;
  /** How late the event loop is: what workers have sent may be unread. */
  readonly lateness = new LoopLateness();
  readonly #deps: Deps;
  /** Lists are replaced, never mutated, so that a reader may release while all are notified. */
  readonly #readers = new ObjectMap<readonly CallReader[]>();
  /** Calls without a reader that may be resumed, oldest first. `leave`: those of another origin are then no longer followed. */
  readonly #resumable = new Map<string, { timer: NodeJS.Timeout; leave(): void }>();
  /** Per other origin: the number of its calls read here, and the subscription to its workers' heartbeats. */
  readonly #others = new Map<string, { calls: number; beats: Subscription }>();
  readonly #standing: readonly Subscription[];
  readonly #callIdAt: number;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.origin = deps.origin;
    const pattern = patternOf(addresses.tokens, deps.origin);
    this.#callIdAt = pattern.length - '*'.length;
    this.#standing = [
      deps.bus.tokens.subscribe(pattern, this.#relayFrame),
      deps.bus.notices.subscribe(subjectOf(addresses.heartbeats, deps.origin), (_subject, body) => this.#reply(deps.origin, body)),
      deps.bus.onReconnect(() => this.#onReconnect()),
    ];
  }

  /** Delivers every frame of the call until released. @param resumedFrom of a client that resumes it: the gateway that admitted the call */
  subscribe(callId: string, reader: CallReader, resumedFrom: string | null = null): CallSubscription {
    const others = this.#readers.get(callId);
    this.#readers.set(callId, others === undefined ? [reader] : [...others, reader]);
    const elsewhere = resumedFrom === null || resumedFrom === this.origin ? null : this.#follow(callId, reader, resumedFrom);
    // Its worker learns of this reader before an abort by another gateway, and not by its next heartbeat alone.
    if (resumedFrom !== null && others === undefined) this.#control(callId, resumptionOf(this.origin));
    this.#dropResumable(callId);
    let isSubscribed = true;
    return {
      ready: () => elsewhere?.ready() ?? Promise.resolve(),
      release: (how) => {
        if (!isSubscribed) return;
        isSubscribed = false;
        elsewhere?.stopFrames();
        const left = (this.#readers.get(callId) ?? []).filter((one) => one !== reader);
        if (left.length > 0) this.#readers.set(callId, left);
        else this.#readers.delete(callId);
        const leave = () => elsewhere?.leave();
        if (left.length === 0 && how === 'dropped') return this.#keepResumable(callId, leave);
        leave();
        if (left.length === 0 && how !== 'over') this.#abort(callId, how === 'withdrawn');
      },
    };
  }

  endAll(error: SwitchyardError): void {
    for (const readers of this.#readers.values()) for (const reader of readers) reader.onEnd(error);
  }

  /** Resumable calls are not aborted: without interest their workers give them the same grace period. */
  async stop(): Promise<void> {
    this.lateness.stop();
    for (const { timer } of this.#resumable.values()) clearTimeout(timer);
    this.#resumable.clear();
    await Promise.all([...this.#standing, ...[...this.#others.values()].map(({ beats }) => beats)].map((subscription) => subscription.stop()));
  }

  /** A property: its bus calls it without `this`. */
  readonly #relayFrame = (subject: string, frame: Uint8Array): void => {
    const callId = subject.slice(this.#callIdAt);
    // No reader: the client has left, and the abort has not reached the worker yet.
    for (const reader of this.#readers.get(callId) ?? NO_READERS) this.#deliver(callId, reader, frame);
  };

  #deliver(callId: string, reader: CallReader, frame: Uint8Array): void {
    try {
      reader.frames.receive(frame);
    } catch (error) {
      this.#deps.log.error({ err: error, call_id: callId }, 'a frame could not be relayed');
      reader.onEnd(new SwitchyardError('internal', 'relaying a frame', { cause: error }));
    }
  }

  #onReconnect(): void {
    for (const readers of this.#readers.values()) for (const reader of readers) reader.onLoss();
  }

  #follow(callId: string, reader: CallReader, origin: string): { ready(): Promise<void>; stopFrames(): void; leave(): void } {
    const { notices, tokens } = this.#deps.bus;
    // One subscription per reader: a shared one would deliver each frame once per reader.
    const frames = tokens.subscribe(subjectOf(addresses.tokens, origin, callId), (_subject, frame) => this.#deliver(callId, reader, frame));
    const other = this.#others.get(origin) ?? {
      calls: 0,
      beats: notices.subscribe(subjectOf(addresses.heartbeats, origin), (_subject, body) => this.#reply(origin, body)),
    };
    other.calls += 1;
    this.#others.set(origin, other);
    const end = (subscription: Subscription) => {
      subscription.stop().catch((error) => this.#deps.log.warn({ err: error, call_id: callId }, 'a subscription could not be ended'));
    };
    return {
      ready: () => frames.ready(),
      stopFrames: () => end(frames),
      leave: () => {
        other.calls -= 1;
        if (other.calls > 0) return;
        this.#others.delete(origin);
        end(other.beats);
      },
    };
  }

  /** Replies to a heartbeat with the calls that have interest. Only a call's own gateway replies when there are none. */
  #reply(origin: string, body: string): void {
    const received = heartbeatIn(body);
    if (received === null) return;
    const calls = received.calls.filter((callId) => this.#readers.has(callId) || this.#resumable.has(callId));
    for (const [index, callId] of received.calls.entries()) {
      for (const reader of this.#readers.get(callId) ?? NO_READERS) reader.onBeat(received.attempts?.[index] ?? null);
    }
    if (calls.length === 0 && origin !== this.origin) return;
    const reply: InterestReply = { v: 1, from: this.origin, question: received.question, calls };
    try {
      this.#deps.bus.notices.publish(subjectOf(addresses.interestReplies, received.workerId), JSON.stringify(reply));
    } catch (error) {
      this.#deps.log.warn({ err: error, worker_id: received.workerId }, 'the reply to a heartbeat could not be published');
    }
  }

  #keepResumable(callId: string, leave: () => void): void {
    const [oldest] = this.#resumable.keys();
    if (this.#resumable.size >= this.#deps.limits.resumableCalls && oldest !== undefined) this.#expireResumable(oldest);
    const timer = setTimeout(() => this.#expireResumable(callId), this.#deps.limits.graceMs);
    this.#resumable.set(callId, { timer, leave });
  }

  #expireResumable(callId: string): void {
    this.#dropResumable(callId);
    this.#abort(callId, false);
  }

  #dropResumable(callId: string): void {
    const resumable = this.#resumable.get(callId);
    if (resumable === undefined) return;
    clearTimeout(resumable.timer);
    this.#resumable.delete(callId);
    resumable.leave();
  }

  #abort(callId: string, isWithdrawn: boolean): void {
    this.#control(callId, abortOf({ isWithdrawn, from: this.origin }));
  }

  #control(callId: string, notice: string): void {
    try {
      this.#deps.bus.notices.publish(subjectOf(addresses.control, callId), notice);
    } catch (error) {
      // They may be lost: the worker's heartbeats ask for interest anyway.
      this.#deps.log.warn({ err: error, call_id: callId }, 'an abort, or the notice of a resumed call, could not be published');
    }
  }
}

function heartbeatIn(text: string): Heartbeat | null {
  try {
    return heartbeat.parse(JSON.parse(text));
  } catch {
    return null;
  }
}
