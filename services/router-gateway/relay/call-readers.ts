import type { Bus, Subscription } from '#bus/bus.ts';
import { type Heartbeat, heartbeat, type InterestReply } from '#bus/messages/heartbeat.ts';
import { addresses, patternOf, subjectOf } from '#bus/subjects.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ObjectMap } from '#shared/object-map.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { GatewayLimits } from '../limits.ts';

/** Who waits for the frames of one call. No function throws. */
export interface CallReader {
  onFrame(frame: Uint8Array): void;
  /** The worker that makes the call has said that it lives. */
  onBeat(): void;
  /** The bus was away: frames and signs of life may have been lost. */
  onLoss(): void;
  /** The gateway gives the call up. */
  onEnd(error: SwitchyardError): void;
}

/**
 * How a reader lets go of a call.
 *
 *   over       it has come to its end, or nobody is to stop it
 *   left       nobody wants it any more: unless another reader has it, it is aborted
 *   dropped    we cut the connection: the call lives on for a while, since its client may come back
 */
export type Departure = 'over' | 'left' | 'dropped';

export interface CallSubscription {
  /** Once the call is subscribed to: what is published from then on arrives. */
  ready(): Promise<void>;
  release(how: Departure): void;
}

const NO_READERS: readonly CallReader[] = [];

interface Deps {
  bus: Bus;
  /** This gateway's own short name, never a number: workers send the frames of its calls to `tok.<origin>.<call>`. */
  origin: string;
  log: Log;
  limits: GatewayLimits;
}

/**
 * The readers of all calls of a gateway. One standing subscription brings the frames of the calls that it let in, and they find their
 * reader in memory, since an interest change per call would reach every broker; a call that a client resumes here and began elsewhere has
 * a subscription of its own. Workers ask who still holds their calls, and are answered from here.
 */
export class CallReaders {
  readonly origin: string;
  readonly #deps: Deps;
  /** Nearly always one of a call. A list is never changed, only replaced, so that a reader may let go while all are told something. */
  readonly #readers = new ObjectMap<readonly CallReader[]>();
  /** Calls whose clients may come back, the oldest first. */
  readonly #resumable = new Map<string, NodeJS.Timeout>();
  /** How many calls of another gateway's are held, and its workers' questions. */
  readonly #others = new Map<string, { calls: number; beats: Subscription }>();
  readonly #standing: readonly Subscription[];
  readonly #callIdAt: number;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.origin = deps.origin;
    const pattern = patternOf(addresses.tokens, deps.origin);
    this.#callIdAt = pattern.length - '*'.length;
    this.#standing = [
      deps.bus.tokens.subscribe(pattern, (subject, frame) => this.#bring(subject.slice(this.#callIdAt), frame)),
      deps.bus.notices.subscribe(subjectOf(addresses.heartbeats, deps.origin), (_subject, body) => this.#reply(deps.origin, body)),
      deps.bus.onReconnect(() => this.#lookAgain()),
    ];
  }

  /** From now on the reader gets every frame of the call, until it lets go. @param origin the gateway that let the call in */
  subscribe(callId: string, reader: CallReader, origin = this.origin): CallSubscription {
    const others = this.#readers.get(callId);
    this.#readers.set(callId, others === undefined ? [reader] : [...others, reader]);
    this.#dropResumable(callId);
    const elsewhere = origin === this.origin ? null : this.#follow(callId, reader, origin);
    let isSubscribed = true;
    return {
      ready: () => elsewhere?.ready() ?? Promise.resolve(),
      release: (how) => {
        if (!isSubscribed) return;
        isSubscribed = false;
        elsewhere?.stop();
        const left = (this.#readers.get(callId) ?? []).filter((one) => one !== reader);
        if (left.length > 0) {
          this.#readers.set(callId, left);
          return;
        }
        this.#readers.delete(callId);
        if (how === 'left') this.#abort(callId);
        else if (how === 'dropped') this.#keepResumable(callId);
      },
    };
  }

  /** Ends every reader. */
  endAll(error: SwitchyardError): void {
    for (const readers of this.#readers.values()) for (const reader of readers) reader.onEnd(error);
  }

  /** The calls whose clients may come back are left to their workers, who wait as long as this gateway would have. */
  async stop(): Promise<void> {
    for (const timer of this.#resumable.values()) clearTimeout(timer);
    this.#resumable.clear();
    await Promise.all([...this.#standing, ...[...this.#others.values()].map(({ beats }) => beats)].map((subscription) => subscription.stop()));
  }

  #bring(callId: string, frame: Uint8Array): void {
    // No reader: the client has left, and the worker has not heard yet.
    for (const reader of this.#readers.get(callId) ?? NO_READERS) this.#deliver(callId, reader, frame);
  }

  #deliver(callId: string, reader: CallReader, frame: Uint8Array): void {
    try {
      reader.onFrame(frame);
    } catch (error) {
      this.#deps.log.error({ err: error, call_id: callId }, 'a frame could not be relayed');
      reader.onEnd(new SwitchyardError('internal', 'relaying a frame', { cause: error }));
    }
  }

  #lookAgain(): void {
    for (const readers of this.#readers.values()) for (const reader of readers) reader.onLoss();
  }

  #follow(callId: string, reader: CallReader, origin: string): { ready(): Promise<void>; stop(): void } {
    const { notices, tokens } = this.#deps.bus;
    // Each reader has one of its own: what one brings to all would come as often as there are readers.
    const frames = tokens.subscribe(subjectOf(addresses.tokens, origin, callId), (_subject, frame) => this.#deliver(callId, reader, frame));
    const other = this.#others.get(origin) ?? {
      calls: 0,
      beats: notices.subscribe(subjectOf(addresses.heartbeats, origin), (_subject, body) => this.#reply(origin, body)),
    };
    other.calls += 1;
    this.#others.set(origin, other);
    return {
      ready: () => frames.ready(),
      stop: () => {
        other.calls -= 1;
        if (other.calls === 0) this.#others.delete(origin);
        const ended = other.calls === 0 ? [frames, other.beats] : [frames];
        for (const subscription of ended)
          subscription.stop().catch((error) => this.#deps.log.warn({ err: error, call_id: callId }, 'a subscription did not end'));
      },
    };
  }

  /** A worker lives, and asks. Of calls of another gateway's only that one says that nobody holds them. */
  #reply(origin: string, body: string): void {
    const asked = heartbeatIn(body);
    if (asked === null) return;
    const calls = asked.calls.filter((callId) => this.#readers.has(callId) || this.#resumable.has(callId));
    for (const callId of calls) for (const reader of this.#readers.get(callId) ?? []) reader.onBeat();
    if (calls.length === 0 && origin !== this.origin) return;
    const reply: InterestReply = { v: 1, from: this.origin, question: asked.question, calls };
    try {
      this.#deps.bus.notices.publish(subjectOf(addresses.interestReplies, asked.workerId), JSON.stringify(reply));
    } catch (error) {
      this.#deps.log.warn({ err: error, worker_id: asked.workerId }, 'a worker could not be answered');
    }
  }

  #keepResumable(callId: string): void {
    const [oldest] = this.#resumable.keys();
    if (this.#resumable.size >= this.#deps.limits.resumableCalls && oldest !== undefined) this.#giveUp(oldest);
    this.#resumable.set(
      callId,
      setTimeout(() => this.#giveUp(callId), this.#deps.limits.graceMs),
    );
  }

  #giveUp(callId: string): void {
    this.#dropResumable(callId);
    this.#abort(callId);
  }

  #dropResumable(callId: string): void {
    if (this.#resumable.size === 0) return;
    clearTimeout(this.#resumable.get(callId));
    this.#resumable.delete(callId);
  }

  #abort(callId: string): void {
    try {
      this.#deps.bus.notices.publish(subjectOf(addresses.control, callId), '{"abort":true}');
    } catch (error) {
      // Lost, as control may be: the worker asks by itself who holds the call.
      this.#deps.log.warn({ err: error, call_id: callId }, 'a call could not be aborted');
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
