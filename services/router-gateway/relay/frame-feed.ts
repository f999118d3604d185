import type { Bus } from '#bus/bus.ts';
import { behindEvents, type ReadyFrame } from '#bus/messages/frame.ts';
import { FrameReader } from '#bus/messages/frame-reader.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import type { Clock } from '#shared/clock.ts';
import type { Deadline, Deadlines } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { CallSending } from '../call-sender.ts';
import type { GatewayLimits } from '../limits.ts';
import { within } from '../within.ts';
import type { CallReaders, CallSubscription, Departure } from './call-readers.ts';
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

/** What becomes of the frames. Exactly one terminal frame (done, error, body), `hasAll` or failure comes last, unless the feed is abandoned. */
export interface FrameSink {
  onFrame(frame: ReadyFrame): void;
  /** Another delivery of the call begins. No content of the former one was taken. */
  restart(): void;
  /** A reader that has come back had all of it already. */
  hasAll(): void;
  fail(error: SwitchyardError): void;
}

const NOTHING_TO_RESUME = 'There is no generation with this id, or nothing is kept of it any more';

/** A gap that is still there after so many readings stays. But for the first they wait until what was said before is kept. */
const GAP_READS = 3;

type NumberedFrame = Exclude<ReturnType<FrameReader['read']>, { kind: 'body' } | null>;

/** How far a reader came: so many events of this frame are the last that it has. */
export interface SeenPosition {
  attempt: number;
  seq: number;
  events: number;
}

/** The call whose frames are wanted. */
export interface FedCall {
  callId: string;
  deadlineAtMs: number;
  /** Whether the call goes on when nobody reads it any more. */
  isDetached: boolean;
  /** How it gets to a worker; absent when that is not this reader's affair. */
  sending?: CallSending;
  /** For a reader that comes back. */
  resumed?: {
    /** The gateway that let the call in. */
    origin: string;
    /** Null when the client wants all of them. */
    after: SeenPosition | null;
  };
}

/**
 * Brings the frames of one call in order, each once. Live frames may be lost, repeated or come from a worker that lost the call, so:
 *
 *   lower attempt, or seen seq    dropped
 *   a gap, a reconnect, silence   what the bus keeps is read again; a gap that stays fails the call
 *   silence after content         neither a frame nor a sign of life of the worker: fails the call, unless what the bus keeps goes on
 *   silence before                the same: it is sent to another worker
 *   higher attempt                starts anew, or fails the call once content was shown: it can't be taken back
 *   past the deadline             fails the call: its worker would have said so itself
 *
 * A reader that comes back begins with what the bus keeps; when that does not reach back to where the reader was, the call is not found.
 * Whenever the call ends here before its worker has ended it, the worker is told to stop, unless the reader was cut off by us.
 */
export class FrameFeed {
  readonly #deps: FeedDeps;
  readonly #callId: string;
  readonly #isDetached: boolean;
  readonly #sending: CallSending | undefined;
  /** Of the gateway that let the call in. */
  readonly #origin: string;
  readonly #sink: FrameSink;
  readonly #subscription: CallSubscription;
  readonly #frames: FrameReader;
  /** Nothing was brought yet to a reader that has come back, so that it can still be told that there is nothing. */
  #isToBeFound: boolean;
  readonly #deadline: Deadline;
  readonly #silence: SilenceWatch;
  /** The worker was silent for long: unless what the bus keeps brings something, it is taken for dead. */
  #isDoubted = false;
  #attempt = 0;
  #nextSeq = 1;
  /** Of a reader that has come back. */
  #seen: SeenPosition | null = null;
  #shown = false;
  /** Frames that came while kept ones are read; null when none are read. */
  #pending: Uint8Array[] | null = null;
  #pendingBytes = 0;
  #later: NodeJS.Timeout | undefined;
  /** The place of the last gap, and how often it was read again. */
  #gap = { position: '', reads: 0 };
  #over = false;

  constructor(deps: FeedDeps, call: FedCall, sink: FrameSink) {
    const { clock, deadlines, readers, limits } = deps;
    const { resumed } = call;
    this.#origin = resumed?.origin ?? readers.origin;
    this.#deps = deps;
    this.#callId = call.callId;
    this.#frames = new FrameReader(call.callId);
    this.#isDetached = call.isDetached;
    this.#sending = call.sending;
    this.#sink = sink;
    this.#isToBeFound = resumed !== undefined;
    const reader = {
      onFrame: (bytes: Uint8Array) => this.#receive(bytes),
      onBeat: () => this.#noteReceived(),
      onLoss: () => this.#lookAnew(),
      // Who was shown a part may come back for the rest; anybody else will ask anew.
      onEnd: (error: SwitchyardError) => this.#fail(error, this.#unread(this.#shown ? 'dropped' : 'left')),
    };
    this.#subscription = readers.subscribe(call.callId, reader, this.#origin);
    const timedOut = () => this.fail(new SwitchyardError('router.timeout', 'The request exceeded its time limit'));
    this.#deadline = deadlines.begin(Math.max(0, call.deadlineAtMs - clock.nowMs()) + limits.deadlineGraceMs, timedOut);
    this.#silence = new SilenceWatch(limits, () => this.#onSilence(), deadlines);
    if (resumed !== undefined) void this.#resume(resumed.after);
  }

  /** Ends the call as failed, unless it has ended. */
  fail(error: SwitchyardError): void {
    this.#fail(error, 'left');
  }

  /** The client is gone: the sink hears nothing more of the call. */
  leave(how: 'left' | 'dropped'): void {
    if (!this.#over) this.#close(this.#unread(how));
  }

  /** A detached call goes on, whoever leaves it. */
  #unread(how: 'left' | 'dropped'): Departure {
    return this.#isDetached ? 'over' : how;
  }

  #fail(error: SwitchyardError, how: Departure): void {
    if (this.#over) return;
    this.#close(how);
    this.#sink.fail(error);
  }

  /** Nothing may fall between what is read and what is heard, so the reading waits until the call is listened to. */
  async #resume(after: SeenPosition | null): Promise<void> {
    if (after !== null) {
      // What it has, it was shown: from there nobody else may take over. Of the frame where it was cut off there may be more.
      this.#attempt = after.attempt;
      this.#nextSeq = Math.max(after.seq, 1);
      this.#seen = after;
      this.#shown = true;
    }
    this.#pending = [];
    await this.#subscription.ready();
    if (this.#over) return;
    this.#reread(this.#pending ?? [], 'kept');
    // What was said just before is kept by then; no later frame need tell that it is missing.
    this.#lookLater();
  }

  #receive(bytes: Uint8Array): void {
    if (this.#over) return;
    if (this.#pending === null) {
      this.#judge(bytes);
      return;
    }
    this.#pending.push(bytes);
    this.#pendingBytes += bytes.byteLength;
    if (this.#pendingBytes > this.#deps.limits.pendingBytes) this.fail(new SwitchyardError('internal', 'too many frames came while others were read again'));
  }

  #judge(bytes: Uint8Array): void {
    const frame = this.#frames.read(bytes);
    if (frame === null) this.#deps.log.warn({ call_id: this.#callId }, 'a message that is no frame of its call was dropped');
    else if (frame.kind === 'body') this.#onFrame(frame);
    else if (frame.attempt > this.#attempt && this.#shown) this.#overtaken(frame);
    else if (frame.attempt >= this.#attempt) this.#order(frame, bytes);
  }

  /** A frame of the newest attempt, which may be its first. */
  #order(frame: NumberedFrame, bytes: Uint8Array): void {
    if (frame.attempt > this.#attempt) {
      this.#attempt = frame.attempt;
      this.#nextSeq = 1;
      this.#sink.restart();
    }
    if (frame.seq < this.#nextSeq) return;
    if (frame.seq > this.#nextSeq || frame.kind === 'headless') {
      this.#heal(frame, bytes);
      return;
    }
    this.#nextSeq += 1;
    if (frame.kind === 'content' && !this.#shown) this.#show();
    const unseen = frame.seq === this.#seen?.seq ? { ...frame, sse: behindEvents(frame.sse, this.#seen.events) } : frame;
    if (unseen.sse.byteLength > 0) this.#onFrame(unseen);
    else if (frame.kind === 'done' || frame.kind === 'error') {
      this.#close('over');
      this.#sink.hasAll();
    }
  }

  #show(): void {
    this.#shown = true;
    this.#sending?.release();
  }

  /** Another worker has the call after content of the first was shown. It may say by itself that the call is lost. */
  #overtaken(frame: NumberedFrame): void {
    if (frame.kind === 'error') this.#onFrame(frame);
    else this.#lost('The worker of this call was lost after a part of the answer was sent');
  }

  #onFrame(frame: ReadyFrame): void {
    this.#isToBeFound = false;
    if (frame.kind === 'open' || frame.kind === 'content') this.#noteReceived();
    else this.#close('over');
    this.#sink.onFrame(frame);
  }

  #heal(frame: NumberedFrame, bytes: Uint8Array): void {
    const position = `${this.#attempt}.${this.#nextSeq}`;
    const reads = this.#gap.position === position ? this.#gap.reads : 0;
    if (reads < GAP_READS) {
      this.#gap = { position, reads: reads + 1 };
      this.#deps.log.debug({ callId: this.#callId, missing: position }, 'a frame is missing: those that the bus keeps are read again');
      this.#reread([bytes], reads === 0 ? 'kept' : 'now');
    } else if (frame.kind === 'error') {
      // It says of itself that what came before is not the whole.
      this.#onFrame(frame);
    } else {
      this.#lost('A part of the answer was lost on its way');
    }
  }

  #lost(message: string): void {
    // Who has come back and was brought nothing learns no more than that there is nothing: it may not even be its call.
    if (this.#isToBeFound) this.#fail(new SwitchyardError('request.not_found', NOTHING_TO_RESUME), 'over');
    else this.fail(new SwitchyardError('router.provider_unavailable', message));
  }

  /** Reads what the bus keeps, then goes on with what came meanwhile. Bounded, since a reader that waits for ever shows nothing for ever. */
  #reread(first: Uint8Array[], upTo: 'kept' | 'now'): void {
    const { bus, limits, log } = this.#deps;
    this.#pending = first;
    this.#pendingBytes = 0;
    const subject = subjectOf(addresses.tokens, this.#origin, this.#callId);
    within(
      limits.replayMs + (upTo === 'now' ? limits.resumableMs : 0),
      bus.tokens.replay(subject, upTo),
      () => new SwitchyardError('service.no_answer', 'reading frames again'),
    ).then(
      (replayed) => this.#goOn(replayed),
      (error) => {
        log.warn({ err: error, call_id: this.#callId }, 'kept frames could not be read');
        // It says nothing of the worker. Who was shown a part can't be left to wait for another look.
        this.#isDoubted &&= this.#shown || this.#isToBeFound;
        this.#goOn([]);
      },
    );
  }

  #goOn(replayed: Uint8Array[]): void {
    if (this.#over) return;
    const frames = [...replayed, ...(this.#pending ?? [])];
    this.#pending = null;
    // Of a long answer the first frames are gone by now; that they are is no gap before the place where this reader goes on.
    if (this.#seen !== null) this.#frames.seekHead(this.#seen.attempt, frames);
    for (const bytes of frames) {
      this.#judge(bytes);
      // Ended, or the next gap was found: then the rest is among what is read again for it.
      if (this.#over || this.#pending !== null) return;
    }
    if (this.#isDoubted) this.#expireWorker();
  }

  /** Content that was shown can't wait for another worker. What a reader who has come back waits for, is sent again by somebody else, or by nobody. */
  #expireWorker(): void {
    const isLost = this.#shown || this.#isToBeFound || (this.#sending === undefined ? this.#silence.inARow > 1 : this.#isBusUp() && !this.#sending.sendAgain());
    if (isLost) this.#lost('Nothing is heard of the worker of this call any more');
  }

  /** While it is away nothing can be heard of anybody. */
  #isBusUp(): boolean {
    return this.#deps.bus.isReady();
  }

  /** Looks at what the bus keeps, unless that is being done. */
  #look(): void {
    if (this.#pending === null) this.#reread([], 'kept');
  }

  /** Looks once what was said until now is kept. Frames go on meanwhile: perhaps none is missing. */
  #lookLater(): void {
    clearTimeout(this.#later);
    // What is being read just then may have been asked for too early.
    this.#later = setTimeout(() => (this.#pending === null ? this.#look() : this.#lookLater()), this.#deps.limits.resumableMs);
  }

  /** The bus was away: the silence was its own, and begins now. */
  #lookAnew(): void {
    this.#noteReceived();
    this.#lookLater();
  }

  /** A frame, or a sign of life. */
  #noteReceived(): void {
    if (this.#over) return;
    this.#isDoubted = false;
    this.#silence.noteReceived();
  }

  #onSilence(): void {
    this.#isDoubted = true;
    this.#look();
  }

  #close(how: Departure): void {
    this.#over = true;
    this.#pending = null;
    this.#deps.deadlines.stop(this.#deadline);
    clearTimeout(this.#later);
    this.#silence.stop();
    this.#sending?.release();
    this.#subscription.release(how);
  }
}
