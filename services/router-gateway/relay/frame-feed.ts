import type { Bus } from '#bus/bus.ts';
import { type Frame, readFrame } from '#bus/messages/frame.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { GatewayLimits } from '../limits.ts';
import { within } from '../within.ts';
import type { TokenDemux } from './token-demux.ts';

export interface FeedDeps {
  bus: Bus;
  demux: TokenDemux;
  clock: Clock;
  log: Log;
  limits: GatewayLimits;
}

/** What becomes of the frames. Exactly one terminal frame (done, error, body) or failure comes last, unless the feed is abandoned. */
export interface FrameSink {
  take(frame: Frame): void;
  /** Another delivery of the call begins. No content of the former one was taken. */
  restart(): void;
  fail(error: SwitchyardError): void;
}

type NumberedFrame = Exclude<Frame, { kind: 'body' }>;

/**
 * Brings the frames of one call in order, each once. Live frames may be lost, repeated or come from a worker that lost the call, so:
 *
 *   lower attempt, or seen seq    dropped
 *   a gap, or a long silence      what the bus keeps is read again; a gap that stays fails the call
 *   higher attempt                starts anew, or fails the call once content was shown: it can't be taken back
 *   past the deadline             fails the call: its worker would have said so itself
 *
 * Whenever the call ends here before its worker has ended it, the worker is told to stop.
 */
export class FrameFeed {
  readonly #deps: FeedDeps;
  readonly #callId: string;
  readonly #subject: string;
  readonly #sink: FrameSink;
  readonly #release: () => void;
  readonly #deadline: NodeJS.Timeout;
  #silence: NodeJS.Timeout;
  /** How often silence was met in a row without finding a frame. */
  #silentReads = 0;
  #attempt = 0;
  #nextSeq = 1;
  #shown = false;
  /** Frames that came while kept ones are read; null when none are read. */
  #pending: Uint8Array[] | null = null;
  #pendingBytes = 0;
  /** The place of the last gap that was read again: a gap at the same place stays. */
  #healed = '';
  #over = false;

  constructor(deps: FeedDeps, call: { callId: string; deadlineAtMs: number }, sink: FrameSink) {
    const { clock, demux, limits } = deps;
    this.#deps = deps;
    this.#callId = call.callId;
    this.#subject = subjectOf(addresses.tokens, demux.origin, call.callId);
    this.#sink = sink;
    this.#release = demux.hold(call.callId, { onFrame: (bytes) => this.#receive(bytes), onEnd: (error) => this.fail(error) });
    const timedOut = () => this.fail(new SwitchyardError('router.timeout', 'The request exceeded its time limit'));
    this.#deadline = setTimeout(timedOut, Math.max(0, call.deadlineAtMs - clock.nowMs()) + limits.deadlineGraceMs);
    this.#silence = this.#armSilence();
  }

  /** Ends the call as failed, unless it has ended. */
  fail(error: SwitchyardError): void {
    if (this.#over) return;
    this.abandon();
    this.#sink.fail(error);
  }

  /** Nobody wants the call any more: the sink hears nothing more of it. */
  abandon(): void {
    if (this.#over) return;
    this.#close();
    try {
      this.#deps.bus.notices.publish(subjectOf(addresses.control, this.#callId), '{"abort":true}');
    } catch (error) {
      // Lost, as control may be: the worker's own deadline ends the call.
      this.#deps.log.warn({ err: error, callId: this.#callId }, 'a call could not be aborted');
    }
  }

  #receive(bytes: Uint8Array): void {
    if (this.#pending === null) {
      this.#judge(bytes);
      return;
    }
    this.#pending.push(bytes);
    this.#pendingBytes += bytes.byteLength;
    if (this.#pendingBytes > this.#deps.limits.pendingBytes) this.fail(new SwitchyardError('internal', 'too many frames came while others were read again'));
  }

  #judge(bytes: Uint8Array): void {
    const frame = readFrame(this.#callId, bytes);
    if (frame === null) this.#deps.log.warn({ callId: this.#callId }, 'a message that is no frame of its call was dropped');
    else if (frame.kind === 'body') this.#take(frame);
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
    if (frame.seq > this.#nextSeq) this.#heal(frame, bytes);
    if (frame.seq !== this.#nextSeq) return;
    this.#nextSeq += 1;
    this.#shown ||= frame.kind === 'content';
    this.#take(frame);
  }

  /** Another worker has the call after content of the first was shown. It may say by itself that the call is lost. */
  #overtaken(frame: NumberedFrame): void {
    if (frame.kind === 'error') this.#take(frame);
    else this.fail(new SwitchyardError('router.provider_unavailable', 'The worker of this call was lost after a part of the answer was sent'));
  }

  #take(frame: Frame): void {
    if (frame.kind === 'open' || frame.kind === 'content') this.#heard();
    else this.#close();
    this.#sink.take(frame);
  }

  #heal(frame: NumberedFrame, bytes: Uint8Array): void {
    const place = `${this.#attempt}.${this.#nextSeq}`;
    if (this.#healed !== place) {
      this.#healed = place;
      this.#deps.log.debug({ callId: this.#callId, missing: place }, 'a frame is missing: those that the bus keeps are read again');
      this.#reread([bytes]);
    } else if (frame.kind === 'error') {
      // It says of itself that what came before is not the whole.
      this.#take(frame);
    } else {
      this.fail(new SwitchyardError('router.provider_unavailable', 'A part of the answer was lost on its way'));
    }
  }

  /** Reads what the bus keeps, then goes on with what came meanwhile. Bounded, since a reader that waits for ever shows nothing for ever. */
  #reread(first: Uint8Array[]): void {
    const { bus, limits, log } = this.#deps;
    this.#pending = first;
    this.#pendingBytes = 0;
    within(limits.replayMs, bus.tokens.replay(this.#subject), () => new SwitchyardError('service.no_answer', 'reading frames again')).then(
      (kept) => this.#resume(kept),
      (error) => {
        log.warn({ err: error, callId: this.#callId }, 'kept frames could not be read');
        this.#resume([]);
      },
    );
  }

  #resume(kept: Uint8Array[]): void {
    if (this.#over) return;
    const frames = [...kept, ...(this.#pending ?? [])];
    this.#pending = null;
    for (const bytes of frames) {
      this.#judge(bytes);
      // Ended, or the next gap was found: then the rest is among what is read again for it.
      if (this.#over || this.#pending !== null) return;
    }
  }

  #heard(): void {
    if (this.#silentReads === 0) {
      this.#silence.refresh();
      return;
    }
    this.#silentReads = 0;
    clearTimeout(this.#silence);
    this.#silence = this.#armSilence();
  }

  #armSilence(): NodeJS.Timeout {
    const { silenceMs, silenceMaxMs } = this.#deps.limits;
    return setTimeout(
      () => {
        this.#silentReads += 1;
        this.#silence = this.#armSilence();
        if (this.#pending === null) this.#reread([]);
      },
      Math.min(silenceMs * 2 ** this.#silentReads, silenceMaxMs),
    );
  }

  #close(): void {
    this.#over = true;
    this.#pending = null;
    clearTimeout(this.#deadline);
    clearTimeout(this.#silence);
    this.#release();
  }
}
