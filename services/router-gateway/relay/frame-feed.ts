import type { Bus } from '#bus/bus.ts';
import { behindEvents, type ReadyFrame } from '#bus/messages/frame.ts';
import { FrameReader } from '#bus/messages/frame-reader.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import type { Clock } from '#shared/clock.ts';
import type { Deadline, Deadlines } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { OutgoingCall } from '../call-sender.ts';
import type { GatewayLimits } from '../limits.ts';
import { within } from '../within.ts';
import type { CallReaders, CallSubscription, ReleaseReason } from './call-readers.ts';
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

/** The last call is one terminal frame (done, error, body), `onNothingLeft` or `fail`, unless the client leaves. */
export interface FrameSink {
  onFrame(frame: ReadyFrame): void;
  /** Another attempt begins; no content of the former one was passed on. */
  restart(): void;
  /** Nothing is left for a resumed reader. */
  onNothingLeft(): void;
  fail(error: SwitchyardError): void;
}

export const NOTHING_TO_RESUME = 'There is no generation with this id, or its frames are no longer retained';

/** Replays for one gap before the call fails. All but the first wait until recent frames are part of a replay. */
const MAX_GAP_REPLAYS = 3;

type NumberedFrame = Exclude<ReturnType<FrameReader['read']>, { kind: 'body' } | null>;

/** Last event of a resumed reader: it has the first `events` events of this frame. */
export interface EventPosition {
  attempt: number;
  seq: number;
  events: number;
}

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
 * Delivers the frames of one call in order, each once. Live frames may be lost, repeated or come from a worker that lost the call:
 *
 *   lower attempt, or repeated seq   dropped
 *   gap, reconnect, silence          replay; a gap that remains fails the call
 *   silence after content            neither frames nor heartbeats: fails the call, unless the replay continues it
 *   silence before content           the same, but the call is sent to another worker
 *   higher attempt                   restarts, or fails the call once content was sent
 *   past the deadline                fails the call: a live worker would have reported it
 *
 * A resumed reader begins with a replay; if that does not reach back to its position, the call is not found. If the feed ends before the
 * worker has ended the call, the call is aborted, unless we cut the reader off.
 */
export class FrameFeed {
  readonly #deps: FeedDeps;
  readonly #callId: string;
  readonly #isDetached: boolean;
  readonly #outgoing: OutgoingCall | undefined;
  /** The admitting gateway. */
  readonly #origin: string;
  readonly #sink: FrameSink;
  readonly #subscription: CallSubscription;
  readonly #frames: FrameReader;
  /** A resumed reader got nothing yet: 404 is still possible. */
  #isUnconfirmed: boolean;
  readonly #deadline: Deadline;
  readonly #silence: SilenceWatch;
  /** The worker was silent for too long: it is taken for dead unless the replay brings frames. */
  #isWorkerSuspect = false;
  #attempt = 0;
  #nextSeq = 1;
  #resumedAfter: EventPosition | null = null;
  #hasSentContent = false;
  /** Frames that arrive during a replay; null when none is running. */
  #pending: Uint8Array[] | null = null;
  #pendingBytes = 0;
  #delayedReplay: NodeJS.Timeout | undefined;
  #gap = { position: '', replays: 0 };
  #isClosed = false;

  constructor(deps: FeedDeps, call: FedCall, sink: FrameSink) {
    const { clock, deadlines, readers, limits } = deps;
    const { resumed } = call;
    this.#origin = resumed?.origin ?? readers.origin;
    this.#deps = deps;
    this.#callId = call.callId;
    this.#frames = new FrameReader(call.callId);
    this.#isDetached = call.isDetached;
    this.#outgoing = call.outgoing;
    this.#sink = sink;
    this.#isUnconfirmed = resumed !== undefined;
    const reader = {
      onFrame: (bytes: Uint8Array) => this.#receive(bytes),
      onBeat: () => this.#noteReceived(),
      onLoss: () => this.#onReconnect(),
      // A client with content may resume; any other will repeat its request.
      onEnd: (error: SwitchyardError) => this.#fail(error, this.#unread(this.#hasSentContent ? 'dropped' : 'left')),
    };
    this.#subscription = readers.subscribe(call.callId, reader, this.#origin);
    const timedOut = () => this.fail(new SwitchyardError('router.timeout', 'The request exceeded its time limit'));
    this.#deadline = deadlines.begin(Math.max(0, call.deadlineAtMs - clock.nowMs()) + limits.deadlineGraceMs, timedOut);
    this.#silence = new SilenceWatch(limits, () => this.#onSilence(), deadlines);
    if (resumed !== undefined) void this.#resume(resumed.after);
  }

  fail(error: SwitchyardError): void {
    this.#fail(error, 'left');
  }

  /** The sink is not called any more. */
  leave(how: 'left' | 'dropped'): void {
    if (!this.#isClosed) this.#close(this.#unread(how));
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
    if (after !== null) {
      // The client has content of this attempt, so no other may follow. The last frame may have further events.
      this.#attempt = after.attempt;
      this.#nextSeq = Math.max(after.seq, 1);
      this.#resumedAfter = after;
      this.#hasSentContent = true;
    }
    this.#pending = [];
    await this.#subscription.ready();
    if (this.#isClosed) return;
    this.#replay(this.#pending ?? [], 'kept');
    // Recent frames are kept by then; no later frame might reveal that one is missing.
    this.#scheduleReplay();
  }

  #receive(bytes: Uint8Array): void {
    if (this.#isClosed) return;
    if (this.#pending === null) {
      this.#handle(bytes);
      return;
    }
    this.#pending.push(bytes);
    this.#pendingBytes += bytes.byteLength;
    if (this.#pendingBytes > this.#deps.limits.pendingBytes) this.fail(new SwitchyardError('internal', 'too many frames arrived during a replay'));
  }

  #handle(bytes: Uint8Array): void {
    const frame = this.#frames.read(bytes);
    if (frame === null) this.#deps.log.warn({ call_id: this.#callId }, 'a message that is not a frame of its call was dropped');
    else if (frame.kind === 'body') this.#onFrame(frame);
    else if (frame.attempt > this.#attempt && this.#hasSentContent) this.#onNewerAttempt(frame);
    else if (frame.attempt >= this.#attempt) this.#order(frame, bytes);
  }

  #order(frame: NumberedFrame, bytes: Uint8Array): void {
    if (frame.attempt > this.#attempt) {
      this.#attempt = frame.attempt;
      this.#nextSeq = 1;
      this.#sink.restart();
    }
    if (frame.seq < this.#nextSeq) return;
    if (frame.seq > this.#nextSeq || frame.kind === 'headless') {
      this.#fillGap(frame, bytes);
      return;
    }
    this.#nextSeq += 1;
    if (frame.kind === 'content' && !this.#hasSentContent) this.#noteContent();
    const unseen = frame.seq === this.#resumedAfter?.seq ? { ...frame, sse: behindEvents(frame.sse, this.#resumedAfter.events) } : frame;
    if (unseen.sse.byteLength > 0) this.#onFrame(unseen);
    else if (frame.kind === 'done' || frame.kind === 'error') {
      this.#close('over');
      this.#sink.onNothingLeft();
    }
  }

  #noteContent(): void {
    this.#hasSentContent = true;
    this.#outgoing?.release();
  }

  /** A newer attempt after content was sent. Its error frame may report the loss itself. */
  #onNewerAttempt(frame: NumberedFrame): void {
    if (frame.kind === 'error') this.#onFrame(frame);
    else this.#failAsLost('The worker of this call was lost after a part of the answer was sent');
  }

  #onFrame(frame: ReadyFrame): void {
    this.#isUnconfirmed = false;
    if (frame.kind === 'open' || frame.kind === 'content') this.#noteReceived();
    else this.#close('over');
    this.#sink.onFrame(frame);
  }

  #fillGap(frame: NumberedFrame, bytes: Uint8Array): void {
    const position = `${this.#attempt}.${this.#nextSeq}`;
    const replays = this.#gap.position === position ? this.#gap.replays : 0;
    if (replays < MAX_GAP_REPLAYS) {
      this.#gap = { position, replays: replays + 1 };
      this.#deps.log.debug({ callId: this.#callId, missing: position }, 'a frame is missing: the retained frames are replayed');
      this.#replay([bytes], replays === 0 ? 'kept' : 'now');
    } else if (frame.kind === 'error') {
      // An error frame itself says that the response is incomplete.
      this.#onFrame(frame);
    } else {
      this.#failAsLost('A part of the answer was lost in transit');
    }
  }

  #failAsLost(message: string): void {
    // A resumed reader without any frame gets 404: the call may not even be its own.
    if (this.#isUnconfirmed) this.#fail(new SwitchyardError('request.not_found', NOTHING_TO_RESUME), 'over');
    else this.fail(new SwitchyardError('router.provider_unavailable', message));
  }

  /** Replays kept frames, then goes on with those that arrived meanwhile. Time-limited, as nothing is delivered during a replay. */
  #replay(first: Uint8Array[], upTo: 'kept' | 'now'): void {
    const { bus, limits, log } = this.#deps;
    this.#pending = first;
    this.#pendingBytes = 0;
    const subject = subjectOf(addresses.tokens, this.#origin, this.#callId);
    within(
      limits.replayMs + (upTo === 'now' ? limits.resumableMs : 0),
      bus.tokens.replay(subject, upTo),
      () => new SwitchyardError('service.no_answer', 'replaying frames'),
    ).then(
      (replayed) => this.#onReplayed(replayed),
      (error) => {
        log.warn({ err: error, call_id: this.#callId }, 'the retained frames could not be replayed');
        // A failed replay is no evidence about the worker. But a client with content can't wait for another one.
        this.#isWorkerSuspect &&= this.#hasSentContent || this.#isUnconfirmed;
        this.#onReplayed([]);
      },
    );
  }

  #onReplayed(replayed: Uint8Array[]): void {
    if (this.#isClosed) return;
    const frames = [...replayed, ...(this.#pending ?? [])];
    this.#pending = null;
    // Early frames of a long response are past retention; before the reader's position that is no gap.
    if (this.#resumedAfter !== null) this.#frames.seekHead(this.#resumedAfter.attempt, frames);
    for (const bytes of frames) {
      this.#handle(bytes);
      // The call has ended, or another replay began, which includes the rest.
      if (this.#isClosed || this.#pending !== null) return;
    }
    if (this.#isWorkerSuspect) this.#expireWorker();
  }

  /** Fails the call after content or while resuming, or if it can't be sent again; otherwise queues it for another worker. */
  #expireWorker(): void {
    const isLost =
      this.#hasSentContent ||
      this.#isUnconfirmed ||
      (this.#outgoing === undefined ? this.#silence.consecutive > 1 : this.#isBusUp() && !this.#outgoing.resend());
    if (isLost) this.#failAsLost('The worker of this call has stopped sending frames and heartbeats');
  }

  /** While disconnected, silence says nothing about the worker. */
  #isBusUp(): boolean {
    return this.#deps.bus.isReady();
  }

  #requestReplay(): void {
    if (this.#pending === null) this.#replay([], 'kept');
  }

  /** Replays once the frames up to now are kept. Live frames go on meanwhile. */
  #scheduleReplay(): void {
    clearTimeout(this.#delayedReplay);
    // A running replay may have been requested too early.
    this.#delayedReplay = setTimeout(() => (this.#pending === null ? this.#requestReplay() : this.#scheduleReplay()), this.#deps.limits.resumableMs);
  }

  /** After a reconnect the silence was the bus's: the watch restarts. */
  #onReconnect(): void {
    this.#noteReceived();
    this.#scheduleReplay();
  }

  #noteReceived(): void {
    if (this.#isClosed) return;
    this.#isWorkerSuspect = false;
    this.#silence.noteReceived();
  }

  #onSilence(): void {
    this.#isWorkerSuspect = true;
    this.#requestReplay();
  }

  #close(how: ReleaseReason): void {
    this.#isClosed = true;
    this.#pending = null;
    this.#deps.deadlines.stop(this.#deadline);
    clearTimeout(this.#delayedReplay);
    this.#silence.stop();
    this.#outgoing?.release();
    this.#subscription.release(how);
  }
}
