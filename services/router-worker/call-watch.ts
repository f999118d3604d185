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
import { CallAbortController, type CallSignal } from './call-signal.ts';

/** After this long in the queue the client may have disconnected: a heartbeat goes out beside the upstream request. */
const LONG_IN_QUEUE_MS = 1_000;
/** Wait for confirmations before a call begins, when an abort may have been missed. */
const REPLY_MS = 300;

/** What ended a call early. `lease-lost`: another worker executes it, or may by now. */
type Cause = 'cancelled' | 'deadline' | 'lease-lost';

const REASONS = {
  cancelled: () => new SwitchyardError('router.cancelled', 'the call was cancelled'),
  deadline: () => new SwitchyardError('router.timeout', 'the call exceeded its time limit'),
  'lease-lost': () => new SwitchyardError('router.cancelled', 'the worker lost the lease of the call'),
} as const satisfies Record<Cause, () => SwitchyardError>;

export class RunningCall {
  readonly #controller = new CallAbortController();
  #cause: Cause | null = null;
  readonly #releases: (() => void)[] = [];

  get signal(): CallSignal {
    return this.#controller;
  }

  /** The first cause; null while there is none. */
  get cause(): Cause | null {
    return this.#cause;
  }

  end(cause: Cause): void {
    if (this.#cause !== null) return;
    this.#cause = cause;
    this.#controller.abort(REASONS[cause]());
  }

  /** @param leave run on release */
  onRelease(leave: () => void): void {
    this.#releases.push(leave);
  }

  release(): void {
    for (const leave of this.#releases) leave();
  }
}

interface RunningCallsDeps {
  bus: Pick<Bus, 'notices' | 'isReady' | 'onReconnect'>;
  clock: Clock;
  /** For deadlines of actors' calls; absent: `clock`. */
  actorClock?: Clock;
  /** Heartbeat interval. */
  heartbeatMs?: number;
}

/** Calls in flight at this worker, ended on abort, without interest or past their deadline. */
export class RunningCalls {
  readonly #clock: Clock;
  readonly #actorClock: Clock;
  readonly #aborts: ReceivedAborts;
  readonly #interest: CallInterest;
  readonly #reconnects: Subscription;
  readonly #running = new SlotMap<RunningCall>();
  readonly #deadlines = new Deadlines();
  /** Since when no abort was missed. */
  #receivesSinceMs: number;

  constructor({ bus, clock, actorClock = clock, heartbeatMs }: RunningCallsDeps) {
    this.#clock = clock;
    this.#actorClock = actorClock;
    this.#receivesSinceMs = clock.nowMs();
    this.#aborts = new ReceivedAborts({ notices: bus.notices, clock });
    const isReady = () => bus.isReady();
    this.#interest = new CallInterest({ notices: bus.notices, workerId: `w${ulid()}`, clock, isReady, ...(heartbeatMs === undefined ? {} : { heartbeatMs }) });
    this.#reconnects = bus.onReconnect(() => {
      this.#receivesSinceMs = clock.nowMs();
    });
  }

  /**
   * Registers a call; ends it at once when it was aborted before, has no interest, or is past its deadline.
   * @param publishedAtMs when its item was published
   * @returns a promise only when interest must be asked for
   */
  begin(call: RouterCall, publishedAtMs: number): RunningCall | Promise<RunningCall> {
    const running = this.#start(call);
    const { callId, reply } = call;
    const followed = {
      callId,
      heartbeatTo: heartbeatTargetOf(call),
      epoch: reply?.epoch ?? 0,
      tolerates: toleratedBy(call),
      sendsHeartbeatNow: this.#hasWaitedLong(publishedAtMs),
    };
    const follow = () => {
      running.onRelease(this.#interest.follow(followed, () => running.end('cancelled')));
      return running;
    };
    if (!this.#mayHaveMissedAbort(call, publishedAtMs)) return follow();
    return this.#interest.hasInterest(followed, REPLY_MS).then((hasInterest) => {
      if (hasInterest) return follow();
      running.end('cancelled');
      return running;
    });
  }

  get count(): number {
    return this.#running.size;
  }

  loseAllLeases(): void {
    for (const running of this.#running.values()) running.end('lease-lost');
  }

  async stop(): Promise<void> {
    await Promise.all([this.#aborts.stop(), this.#interest.stop(), this.#reconnects.stop()]);
  }

  #start({ callId, deadlineAtMs, reply }: RouterCall): RunningCall {
    const running = new RunningCall();
    const restMs = deadlineAtMs - (reply === null ? this.#clock : this.#actorClock).nowMs();
    const deadline = this.#deadlines.begin(restMs, () => running.end('deadline'));
    // A reader that resumed at another gateway goes on without the first.
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

/** Where heartbeats of the call go: a client's origin, an actor's partition. */
function heartbeatTargetOf({ origin, reply }: RouterCall): string {
  return reply === null ? origin : String(partitionOf(reply.sessionId));
}

/** An actor waits while its partition has no owner; a detached call needs no reader. */
function toleratedBy({ detached, reply }: RouterCall): readonly NoInterest[] {
  if (detached) return ['left', 'unanswered'];
  return reply === null ? [] : ['unanswered'];
}
