import type { Bus, Subscription } from '#bus/bus.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { partitionOf } from '#bus/partition.ts';
import { RETAIN_MS, ReceivedAborts } from '#bus/received-aborts.ts';
import type { Clock } from '#shared/clock.ts';
import { Deadlines } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import { SlotMap } from '#shared/slot-map.ts';
import { CallInterest, type NoInterest } from './call-interest.ts';
import { CallEnding, type CallSignal } from './call-signal.ts';

/** After this long in the queue the client may be gone: it is asked for beside the upstream request. */
const LONG_IN_QUEUE_MS = 1_000;
/** For those who hold a call to say so, before it is begun without knowing. */
const REPLY_MS = 300;

/** Why a call was ended before it had ended by itself. `abandoned`: another worker makes it, or may by now. */
type Cause = 'cancelled' | 'deadline' | 'abandoned';

const REASONS = {
  cancelled: () => new SwitchyardError('router.cancelled', 'the call was cancelled'),
  deadline: () => new SwitchyardError('router.timeout', 'the call exceeded its time limit'),
  abandoned: () => new SwitchyardError('router.cancelled', 'the worker gave the call up'),
} as const satisfies Record<Cause, () => SwitchyardError>;

/** A call that this worker makes. */
export class RunningCall {
  readonly #ending = new CallEnding();
  #cause: Cause | null = null;
  readonly #leaves: (() => void)[] = [];

  get signal(): CallSignal {
    return this.#ending;
  }

  /** Null while nothing has ended it. The first cause stands. */
  get cause(): Cause | null {
    return this.#cause;
  }

  end(cause: Cause): void {
    if (this.#cause !== null) return;
    this.#cause = cause;
    this.#ending.abort(REASONS[cause]());
  }

  /** @param leave what is to be done once the call is over */
  onRelease(leave: () => void): void {
    this.#leaves.push(leave);
  }

  /** The call is over: an abort finds nothing to abort any more. */
  release(): void {
    for (const leave of this.#leaves) leave();
  }
}

interface RunningCallsDeps {
  bus: Pick<Bus, 'notices' | 'isReady' | 'onReconnect'>;
  clock: Clock;
  /** Of actors' deadlines; absent: `clock`. */
  actorClock?: Clock;
  /** Between two signs of life. */
  askMs?: number;
}

/** The calls that this worker makes, each until it is over, aborted, wanted by nobody, or past its time. */
export class RunningCalls {
  readonly #clock: Clock;
  readonly #actorClock: Clock;
  readonly #aborts: ReceivedAborts;
  readonly #interest: CallInterest;
  readonly #reconnects: Subscription;
  readonly #running = new SlotMap<RunningCall>();
  readonly #deadlines = new Deadlines();
  /** Since when every abort was heard here. */
  #receivesSinceMs: number;

  constructor({ bus, clock, actorClock = clock, askMs }: RunningCallsDeps) {
    this.#clock = clock;
    this.#actorClock = actorClock;
    this.#receivesSinceMs = clock.nowMs();
    this.#aborts = new ReceivedAborts({ notices: bus.notices, clock });
    const isReady = () => bus.isReady();
    this.#interest = new CallInterest({ notices: bus.notices, workerId: `w${ulid()}`, clock, isReady, ...(askMs === undefined ? {} : { askMs }) });
    this.#reconnects = bus.onReconnect(() => {
      this.#receivesSinceMs = clock.nowMs();
    });
  }

  /**
   * Takes up a call, unless it is aborted already, nobody wants it any more, or its time is over: then its signal says so at once.
   * @param publishedAtMs when its item was put on the bus
   * @returns a promise only when somebody has to be asked first
   */
  begin(call: RouterCall, publishedAtMs: number): RunningCall | Promise<RunningCall> {
    const running = this.#start(call);
    const { callId, reply } = call;
    const asked = { callId, askAt: askedAt(call), epoch: reply?.epoch ?? 0, bears: bearsOf(call), isAskedNow: this.#hasWaitedLong(publishedAtMs) };
    const follow = () => {
      running.onRelease(this.#interest.follow(asked, () => running.end('cancelled')));
      return running;
    };
    if (!this.#mayHaveMissedAbort(call, publishedAtMs)) return follow();
    return this.#interest.hasInterest(asked, REPLY_MS).then((hasInterest) => {
      if (hasInterest) return follow();
      running.end('cancelled');
      return running;
    });
  }

  get count(): number {
    return this.#running.size;
  }

  loseAllLeases(): void {
    for (const running of this.#running.values()) running.end('abandoned');
  }

  async stop(): Promise<void> {
    await Promise.all([this.#aborts.stop(), this.#interest.stop(), this.#reconnects.stop()]);
  }

  #start({ callId, deadlineAtMs, reply }: RouterCall): RunningCall {
    const running = new RunningCall();
    const restMs = deadlineAtMs - (reply === null ? this.#clock : this.#actorClock).nowMs();
    const deadline = this.#deadlines.begin(restMs, () => running.end('deadline'));
    // Who has resumed the call at another gateway goes on reading, though the first reader has left.
    const unfollow = this.#aborts.follow(callId, () => {
      if (!this.#interest.hasInterestElsewhere(callId)) running.end('cancelled');
    });
    if (restMs <= 0) running.end('deadline');
    const slot = this.#running.add(running);
    running.onRelease(() => {
      this.#deadlines.stop(deadline);
      unfollow();
      this.#running.remove(slot);
    });
    return running;
  }

  #mayHaveMissedAbort({ detached }: RouterCall, publishedAtMs: number): boolean {
    return !detached && publishedAtMs < Math.max(this.#receivesSinceMs, this.#clock.nowMs() - RETAIN_MS);
  }

  #hasWaitedLong(publishedAtMs: number): boolean {
    return this.#clock.nowMs() - publishedAtMs > LONG_IN_QUEUE_MS;
  }
}

/** Whom a call is asked about at. */
function askedAt({ origin, reply }: RouterCall): string {
  return reply === null ? origin : String(partitionOf(reply.sessionId));
}

/** An actor waits though its partition is without an owner for a while; a detached call goes on whoever reads it. */
function bearsOf({ detached, reply }: RouterCall): readonly NoInterest[] {
  if (detached) return ['left', 'unanswered'];
  return reply === null ? [] : ['unanswered'];
}
