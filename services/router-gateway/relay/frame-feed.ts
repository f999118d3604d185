import type { Bus } from '#bus/bus.ts';
import type { EventTemplate } from '#bus/messages/event-template.ts';
import type { BodyFrame, ErrorFrame, OpenFrame, ReadyFrame, TextFrame } from '#bus/messages/frame.ts';
import { type EventPosition, type FrameHandler, type NumberedFrame, OrderedFrames } from '#bus/messages/ordered-frames.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import type { Clock } from '#shared/clock.ts';
import type { Deadline, Deadlines } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { unstatedTemplate } from '#shared/surfaces/chat-completions/unstated-template.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import { within } from '#shared/within.ts';
import type { OutgoingCall } from '../call-sender.ts';
import type { GatewayLimits } from '../limits.ts';
import type { CallReader, CallReaders, CallSubscription, ReleaseReason } from './call-readers.ts';
import { SilenceWatch } from './silence-watch.ts';

export interface FeedDeps {
  bus: Bus;
  readers: CallReaders;
  clock: Clock;
  deadlines: Deadlines;
  log: Log;
  limits: GatewayLimits;
  metrics: Metrics;
}

export type OtherFrame = OpenFrame | ErrorFrame | BodyFrame;

/** The last call is one terminal frame (done, error, body), `onNothingLeft` or `fail`, unless the client leaves. */
export interface FrameSink {
  /** @param isText it is one event */
  onContent(sse: Uint8Array, isText: boolean): void;
  /** @param isBehindLoss of an error: events before it are missing, or its worker does not know which were sent */
  onFrame(frame: OtherFrame, isBehindLoss?: boolean): void;
  /** Of a resumed reader: the last event that it has. */
  onPosition?(sse: Uint8Array): void;
  /** Another attempt begins; no content of the former one was passed on. */
  restart(): void;
  /** Nothing is left for a resumed reader. */
  onNothingLeft(): void;
  fail(error: SwitchyardError): void;
}

export const NOTHING_TO_RESUME = 'There is no generation with this id, or its frames are no longer retained';

export interface FedCall {
  callId: string;
  deadlineAtMs: number;
  /** Whether the call goes on without a reader. */
  isDetached: boolean;
  /** Absent when this reader did not start the call. */
  outgoing?: OutgoingCall;
  resumed?: {
    /** The admitting gateway. */
    origin: string;
    /** Null: from the start. */
    after: EventPosition | null;
  };
}

/**
 * Passes the frames of one call on, in order (ordered-frames.ts), until the call ends:
 *
 *   gap, reconnect, silence          replay; a gap that remains fails the call
 *   silence after content            neither frames nor heartbeats of the attempt: fails the call, unless the replay continues it. Not while this process is late
 *   silence before content           neither of any attempt: the call is sent to another worker
 *   later delivery                   restarts, or fails the call once content was sent
 *   a second one of its number       restarts with its content, or is not read once content was sent (ordered-frames.ts)
 *   past the deadline                fails the call: a live worker would have reported it. After content it is sent to another worker, which bills it
 *
 * A resumed reader begins with a replay; if that does not reach back to its position, the call is not found. If the feed ends before the
 * worker has ended the call, the call is aborted, unless it is detached or we cut the reader off.
 */
export class FrameFeed implements CallReader, FrameHandler {
  readonly #deps: FeedDeps;
  readonly #callId: string;
  readonly #isDetached: boolean;
  readonly #outgoing: OutgoingCall | undefined;
  readonly #sink: FrameSink;
  readonly frames: OrderedFrames;
  readonly #subscription: CallSubscription;
  /** A resumed reader got nothing yet: 404 is still possible. */
  #isUnconfirmed: boolean;
  readonly #deadline: Deadline;
  readonly #silence: SilenceWatch;
  /** The worker was silent for too long: it is taken for dead unless the replay brings frames. */
  #isWorkerSuspect = false;
  #hasSentContent = false;
  #delayedReplay: NodeJS.Timeout | undefined;
  #isClosed = false;
  #isOver = false;

  constructor(deps: FeedDeps, call: FedCall, sink: FrameSink) {
    const { bus, clock, deadlines, readers, limits } = deps;
    const { callId, resumed } = call;
    const origin = resumed?.origin ?? readers.origin;
    this.#deps = deps;
    this.#callId = callId;
    this.#isDetached = call.isDetached;
    this.#outgoing = call.outgoing;
    this.#sink = sink;
    this.#isUnconfirmed = resumed !== undefined;
    // Time-limited, as nothing is delivered during a replay. Most calls need none.
    const replay = (upTo: 'kept' | 'now') => {
      const frames = bus.tokens.replay(subjectOf(addresses.tokens, origin, callId), upTo);
      return within(limits.replayMs + (upTo === 'now' ? limits.resumableMs : 0), frames, noAnswer);
    };
    this.frames = new OrderedFrames({ callId, replay, maxPendingBytes: limits.pendingBytes, unstatedTemplate }, this);
    this.#subscription = readers.subscribe(callId, this, resumed?.origin);
    const timedOut = () => {
      this.#settleShown();
      this.fail(new SwitchyardError('router.timeout', 'The request exceeded its time limit'));
    };
    this.#deadline = deadlines.begin(Math.max(0, call.deadlineAtMs - clock.nowMs()) + limits.deadlineGraceMs, timedOut);
    this.#silence = new SilenceWatch(limits, () => this.#onSilence(), { deadlines, lateness: readers.lateness });
    if (resumed !== undefined) void this.#resume(resumed.after);
  }

  /** The call could not be sent, or not surely: the client learns that it is not made. */
  withdraw(error: SwitchyardError): void {
    this.#isOver = true;
    this.#fail(error, 'withdrawn');
  }

  fail(error: SwitchyardError): void {
    this.#fail(error, this.#unread('left'));
  }

  /** Whether the call has ended, as far as this reader knows, or was withdrawn. A detached one goes on where its reader failed. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** The sink is not called any more. */
  leave(how: 'left' | 'dropped'): void {
    if (!this.#isClosed) this.#close(this.#unread(how));
  }

  /** Once content was sent, another worker that has the call too is no proof that the one whose answer it is runs on. */
  onBeat(attempt: number | null): void {
    if (!this.#hasSentContent || attempt === null || attempt === this.frames.attempt) this.#noteReceived();
  }

  /** After a reconnect the silence was the bus's: the watch restarts. */
  onLoss(): void {
    this.#noteReceived();
    this.#scheduleReplay();
  }

  /** A client with content may resume; any other will repeat its request. */
  onEnd(error: SwitchyardError): void {
    this.#fail(error, this.#unread(this.#hasSentContent ? 'dropped' : 'left'));
  }

  onText({ seq, text }: TextFrame, template: EventTemplate): void {
    this.#onContent(template.eventOf(seq, text), true);
  }

  onReady(frame: ReadyFrame): void {
    if (frame.kind === 'content') {
      this.#onContent(frame.sse, false);
      return;
    }
    this.#isUnconfirmed = false;
    if (frame.kind === 'open') this.#noteReceived();
    else this.#end();
    this.#sink.onFrame(frame);
  }

  onAttempt(frame: NumberedFrame): boolean {
    if (!this.#hasSentContent) {
      this.#sink.restart();
      return true;
    }
    // An error frame may report the loss itself.
    if (frame.kind === 'error') this.#onErrorBehindLoss(frame);
    else this.#failAsLost('The worker of this call was lost after a part of the answer was sent');
    return false;
  }

  onNothingLeft(): void {
    this.#close('over');
    this.#sink.onNothingLeft();
  }

  onLost(frame: NumberedFrame): void {
    // An error frame itself says that the answer is incomplete.
    if (frame.kind === 'error') this.#onErrorBehindLoss(frame);
    else this.#failAsLost('A part of the answer was lost in transit');
  }

  onPosition(sse: Uint8Array): void {
    this.#sink.onPosition?.(sse);
  }

  onForeign(): void {
    this.#deps.log.warn({ call_id: this.#callId }, 'a message that is not a frame of its call was dropped');
  }

  onOverflow(): void {
    this.fail(new SwitchyardError('internal', 'too many frames arrived during a replay'));
  }

  onReplayed(error: unknown): void {
    if (error !== null) {
      this.#deps.log.warn({ err: error, call_id: this.#callId }, 'the retained frames could not be replayed');
      // A failed replay is no evidence about the worker. But a client with content can't wait for another one.
      this.#isWorkerSuspect &&= this.#hasSentContent || this.#isUnconfirmed;
    }
    if (this.#isWorkerSuspect) this.#expireWorker();
  }

  #onErrorBehindLoss(frame: ErrorFrame): void {
    this.#isUnconfirmed = false;
    this.#end();
    this.#sink.onFrame(frame, true);
  }

  /** A detached call goes on without its reader. */
  #unread(how: 'left' | 'dropped'): ReleaseReason {
    return this.#isDetached ? 'over' : how;
  }

  #fail(error: SwitchyardError, how: ReleaseReason): void {
    if (this.#isClosed) return;
    this.#close(how);
    this.#sink.fail(error);
  }

  /** Nothing may be missed between replay and live frames: the replay waits for the subscription. */
  async #resume(after: EventPosition | null): Promise<void> {
    this.frames.resume(after);
    // The client has content of its attempt, so no other may follow.
    this.#hasSentContent = after !== null;
    await this.#subscription.ready();
    if (this.#isClosed) return;
    this.frames.replay();
    // Recent frames are kept by then; no later frame might reveal that one is missing.
    this.#scheduleReplay();
  }

  #onContent(sse: Uint8Array, isText: boolean): void {
    this.#hasSentContent = true;
    this.#isUnconfirmed = false;
    this.#isWorkerSuspect = false;
    this.#silence.noteReceived();
    this.#sink.onContent(sse, isText);
  }

  #failAsLost(message: string): void {
    // A resumed reader without any frame gets 404: the call may not even be its own.
    if (this.#isUnconfirmed) this.#fail(new SwitchyardError('request.not_found', NOTHING_TO_RESUME), 'over');
    else this.fail(new SwitchyardError('router.provider_unavailable', message));
  }

  /** Fails the call after content or while resuming, or if it can't be sent again; otherwise queues it for another worker. */
  #expireWorker(): void {
    const isLost =
      this.#hasSentContent ||
      this.#isUnconfirmed ||
      (this.#outgoing === undefined ? this.#silence.consecutive > 1 : this.#isBusUp() && !this.#outgoing.resend());
    if (!isLost) return;
    this.#settleShown();
    this.#failAsLost('The worker of this call has stopped sending frames and heartbeats');
  }

  /** The worker is lost, or lags far behind: another one bills what was shown. */
  #settleShown(): void {
    if (this.#hasSentContent) this.#outgoing?.settle();
  }

  /** While disconnected, silence says nothing about the worker. */
  #isBusUp(): boolean {
    return this.#deps.bus.isReady();
  }

  /** Replays once the frames up to now are kept. Live frames go on meanwhile. */
  #scheduleReplay(): void {
    clearTimeout(this.#delayedReplay);
    // A running replay may have been requested too early.
    this.#delayedReplay = setTimeout(() => (this.frames.isReplaying ? this.#scheduleReplay() : this.frames.replay()), this.#deps.limits.resumableMs);
  }

  #noteReceived(): void {
    if (this.#isClosed) return;
    this.#isWorkerSuspect = false;
    this.#silence.noteReceived();
  }

  #onSilence(): void {
    this.#isWorkerSuspect = true;
    this.frames.replay();
  }

  /** By the worker. */
  #end(): void {
    this.#isOver = true;
    this.#close('over');
  }

  #close(how: ReleaseReason): void {
    this.#isClosed = true;
    this.frames.close();
    this.#deps.deadlines.stop(this.#deadline);
    clearTimeout(this.#delayedReplay);
    this.#silence.stop();
    this.#outgoing?.release();
    this.#subscription.release(how);
  }
}

/** Of a replay that takes too long. @throws `service.no_answer` */
export function noAnswer(): never {
  throw new SwitchyardError('service.no_answer', 'replaying frames');
}
