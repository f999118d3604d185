import type { Bus, Subscription } from '#bus/bus.ts';
import { HeardAborts, REMEMBER_MS } from '#bus/heard-aborts.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { partitionOf } from '#bus/partition.ts';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import { CallHolders, type Unheld } from './call-holders.ts';

/** Timers take no longer delay. */
const MAX_TIMER_MS = 2_147_483_647;
/** After this long in the queue the client may be gone: it is asked for beside the upstream request. */
const LONG_IN_QUEUE_MS = 1_000;
/** For those who hold a call to say so, before it is begun without knowing. */
const ANSWER_MS = 300;

/** Why a call was ended before it had ended by itself. `abandoned`: another worker makes it, or may by now. */
type Cause = 'cancelled' | 'deadline' | 'abandoned';

export interface RunningCall {
  signal: AbortSignal;
  /** Null while nothing has ended it. The first cause stands. */
  cause(): Cause | null;
  abandon(): void;
  /** The call is over: an abort finds nothing to abort any more. */
  forget(): void;
}

const REASONS = {
  cancelled: () => new SwitchyardError('router.cancelled', 'the call was cancelled'),
  deadline: () => new SwitchyardError('router.timeout', 'the call exceeded its time limit'),
  abandoned: () => new SwitchyardError('router.cancelled', 'the worker gave the call up'),
} as const satisfies Record<Cause, () => SwitchyardError>;

interface RunningCallsDeps {
  bus: Pick<Bus, 'notices' | 'isReady' | 'onReconnect'>;
  clock: Clock;
  /** Between two signs of life. */
  askMs?: number;
}

/** The calls that this worker makes, each until it is over, aborted, wanted by nobody, or past its time. */
export class RunningCalls {
  readonly #clock: Clock;
  readonly #aborts: HeardAborts;
  readonly #holders: CallHolders;
  readonly #reconnects: Subscription;
  readonly #running = new Set<(cause: Cause) => void>();
  /** Since when every abort was heard here. */
  #hearsSinceMs: number;

  constructor({ bus, clock, askMs }: RunningCallsDeps) {
    this.#clock = clock;
    this.#hearsSinceMs = clock.nowMs();
    this.#aborts = new HeardAborts({ notices: bus.notices, clock });
    const isReady = () => bus.isReady();
    this.#holders = new CallHolders({ notices: bus.notices, workerId: `w${ulid()}`, clock, isReady, ...(askMs === undefined ? {} : { askMs }) });
    this.#reconnects = bus.onReconnect(() => {
      this.#hearsSinceMs = clock.nowMs();
    });
  }

  /**
   * Takes up a call, unless it is aborted already, nobody wants it any more, or its time is over: then its signal says so at once.
   * @param publishedAtMs when its item was put on the bus
   */
  async begin(call: RouterCall, publishedAtMs: number): Promise<RunningCall> {
    const { callId, deadlineAtMs } = call;
    const controller = new AbortController();
    let cause: Cause | null = null;
    const end = (why: Cause) => {
      if (cause !== null) return;
      cause = why;
      controller.abort(REASONS[why]());
    };
    const restMs = deadlineAtMs - this.#clock.nowMs();
    const timer = setTimeout(end, Math.min(Math.max(restMs, 0), MAX_TIMER_MS), 'deadline');
    // Who has resumed the call at another gateway goes on reading, though the first reader has left.
    const unfollow = this.#aborts.follow(callId, () => {
      if (!this.#holders.isHeldElsewhere(callId)) end('cancelled');
    });
    if (restMs <= 0) end('deadline');
    this.#running.add(end);
    const unhold = await this.#hold(call, publishedAtMs, () => end('cancelled'));
    return {
      signal: controller.signal,
      cause: () => cause,
      abandon: () => end('abandoned'),
      forget: () => {
        clearTimeout(timer);
        unfollow();
        unhold();
        this.#running.delete(end);
      },
    };
  }

  abandonAll(): void {
    for (const end of [...this.#running]) end('abandoned');
  }

  async stop(): Promise<void> {
    await Promise.all([this.#aborts.stop(), this.#holders.stop(), this.#reconnects.stop()]);
  }

  async #hold({ callId, detached, origin, reply }: RouterCall, publishedAtMs: number, onUnheld: () => void): Promise<() => void> {
    const askAt = reply === null ? origin : String(partitionOf(reply.sessionId));
    const epoch = reply?.epoch ?? 0;
    const nowMs = this.#clock.nowMs();
    const queuedMs = nowMs - publishedAtMs;
    const mayHaveMissedAbort = publishedAtMs < Math.max(this.#hearsSinceMs, nowMs - REMEMBER_MS);
    if (mayHaveMissedAbort && !detached && !(await this.#holders.isWanted({ callId, askAt, epoch }, ANSWER_MS))) {
      onUnheld();
      return () => {};
    }
    return this.#holders.follow({ callId, askAt, epoch, bears: bearsOf(detached, reply !== null), isAskedNow: queuedMs > LONG_IN_QUEUE_MS }, onUnheld);
  }
}

/** An actor waits though its partition is without an owner for a while; a detached call goes on whoever reads it. */
function bearsOf(isDetached: boolean, isActors: boolean): readonly Unheld[] {
  if (isDetached) return ['left', 'unanswered'];
  return isActors ? ['unanswered'] : [];
}
