import type { Bus, Subscription } from '#bus/bus.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { partitionOf } from '#bus/partition.ts';
import { RETAIN_MS, ReceivedAborts } from '#bus/received-aborts.ts';
import type { RunningItem } from '#services/work/running-items.ts';
import type { Clock } from '#shared/clock.ts';
import { ulid } from '#shared/ids.ts';
import { CallInterest, type NoInterest } from './call-interest.ts';

/** After this long in the queue the client may have disconnected: a heartbeat goes out beside the upstream request. */
const LONG_IN_QUEUE_MS = 1_000;
/** Wait for confirmations before a call begins, when an abort may have been missed. */
const REPLY_MS = 300;

interface CallWatchDeps {
  bus: Pick<Bus, 'notices' | 'isReady' | 'onReconnect'>;
  clock: Clock;
  /** Heartbeat interval. */
  heartbeatMs?: number;
}

/** Cancels calls in flight at this worker on an abort, and without interest. */
export class CallWatch {
  readonly #clock: Clock;
  readonly #aborts: ReceivedAborts;
  readonly #interest: CallInterest;
  readonly #reconnects: Subscription;
  /** Since when no abort was missed. */
  #receivesSinceMs: number;

  constructor({ bus, clock, heartbeatMs }: CallWatchDeps) {
    this.#clock = clock;
    this.#receivesSinceMs = clock.nowMs();
    this.#aborts = new ReceivedAborts({ notices: bus.notices, clock });
    const isReady = () => bus.isReady();
    this.#interest = new CallInterest({ notices: bus.notices, workerId: `w${ulid()}`, isReady, ...(heartbeatMs === undefined ? {} : { heartbeatMs }) });
    this.#reconnects = bus.onReconnect(() => {
      this.#receivesSinceMs = clock.nowMs();
    });
  }

  /**
   * Follows a call until it is released; cancels it at once when it was aborted before, or has no interest.
   * @param publishedAtMs when its item was published
   * @returns a promise only when interest must be asked for
   */
  follow(call: RouterCall, running: RunningItem, publishedAtMs: number): void | Promise<void> {
    const { callId, reply } = call;
    const followed = {
      callId,
      heartbeatTo: heartbeatTargetOf(call),
      attempt: running.attempt,
      epoch: reply?.epoch ?? 0,
      tolerates: toleratedBy(call),
      sendsHeartbeatNow: this.#hasWaitedLong(publishedAtMs),
    };
    const onNoInterest = () => running.end('cancelled');
    // Its aborts are followed once its interest is: readers elsewhere that are remembered count for it.
    if (!this.#mayHaveMissedAbort(call, publishedAtMs)) {
      running.onRelease(this.#interest.follow(followed, onNoInterest));
      return this.#followAborts(call, running);
    }
    const answered = this.#interest.followIfRead(followed, onNoInterest, REPLY_MS);
    this.#followAborts(call, running);
    return answered.then((unfollow) => {
      if (unfollow === null) running.end('cancelled');
      else running.onRelease(unfollow);
    });
  }

  async stop(): Promise<void> {
    await Promise.all([this.#aborts.stop(), this.#interest.stop(), this.#reconnects.stop()]);
  }

  #followAborts(call: RouterCall, running: RunningItem): void {
    const named = { callId: call.callId, heartbeatTo: heartbeatTargetOf(call) };
    const unfollow = this.#aborts.follow(call.callId, {
      onAbort: ({ isWithdrawn, from }) => {
        // Of a reader that has left: its gateway may not know that the call is detached.
        if (call.detached && !isWithdrawn) return;
        // Readers at other gateways go on without those of this one.
        if (!this.#interest.isReadWithout(named, from ?? named.heartbeatTo)) running.end('cancelled');
      },
      onResumed: (from) => this.#interest.noteReader(call.callId, from),
    });
    running.onRelease(unfollow);
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
