import type { NoticeBoard, Subscription } from '#bus/bus.ts';
import { type Heartbeat, interestReply, MAX_CALLS_PER_HEARTBEAT } from '#bus/messages/heartbeat.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import type { Clock } from '#shared/clock.ts';
import { jsonIn } from '#shared/json-in.ts';
import { ObjectMap } from '#shared/object-map.ts';

/** Interval of the heartbeats. Readers take a worker for dead after three silent intervals. */
const ASK_MS = 2_000;
/** Replies of a call's origin in a row that omit it before it is given up: one may have crossed the reader's subscription in flight. */
const MISSES = 2;
/** Heartbeats in a row without any reply after which a call has no reader: 30 s, enough for a client to resume elsewhere. */
const UNANSWERED = 15;
/** An abort is ignored when another gateway confirmed interest in the call within this time. */
const OTHERS_MS = 6_000;
/** Ticks whose heartbeats still accept replies, and heartbeats at most. Later replies are dropped. */
const OPEN_TICKS = 4;
const OPEN_QUESTIONS = 256;

/** `left`: the origin's replies omit the call. `unanswered`: no reply at all. */
export type NoInterest = 'left' | 'unanswered';

interface Followed {
  readonly callId: string;
  readonly askAt: string;
  /** Of the owner that requested an actor's call; 0 for a client's. */
  readonly epoch: number;
  readonly bears: readonly NoInterest[];
  /** Both become no-ops on release: open heartbeats keep this object, which must not keep what the callbacks close over. */
  onNoInterest: (why: NoInterest) => void;
  onInterest: () => void;
  /** Replies of the origin in a row that omit the call, without a confirmation from elsewhere. */
  misses: number;
  /** Heartbeats in a row without a confirmation or a reply of the origin. */
  unanswered: number;
  otherInterestAtMs: number;
  /** Number of the latest heartbeat whose reply confirmed interest. */
  interestInQuestion: number;
}

interface CallInterestDeps {
  notices: NoticeBoard;
  /** One token of a subject. */
  workerId: string;
  clock: Clock;
  /** Whether the bus is connected: heartbeats that can't be sent count against no call. */
  isReady(): boolean;
  askMs?: number;
}

/**
 * Tracks whether the calls of this worker have a reader: a client's, at any gateway, or the actor that waits. Abort notices may be lost and gateways may die,
 * so each worker names its calls in heartbeats and aborts those without interest. One timer and one subscription serve all calls.
 */
export class CallInterest {
  readonly #deps: CallInterestDeps;
  /** By call id. Several per id: an item can be redelivered while the first delivery is still winding down. */
  readonly #followed = new ObjectMap<readonly Followed[]>();
  readonly #replies: Subscription;
  readonly #timer: NodeJS.Timeout;
  /** The calls named in each open heartbeat, oldest first: a reply counts only for the calls that it was asked about. */
  readonly #asked = new Map<number, readonly Followed[]>();
  #question = 0;
  /** The first heartbeat number of each open tick, oldest first. */
  readonly #ticks: number[] = [];

  constructor(deps: CallInterestDeps) {
    this.#deps = deps;
    this.#replies = deps.notices.subscribe(subjectOf(addresses.interestReplies, deps.workerId), (_subject, body) => this.#onReply(body));
    this.#timer = setInterval(() => this.#tick(), deps.askMs ?? ASK_MS);
  }

  /**
   * @param askAt the origin of a client's call, the partition of an actor's
   * @param epoch of the owner that requested an actor's call. A replier with an older epoch has lost the partition and doesn't know the call
   * @param bears results that don't end the call: an actor waits though its partition has no owner for a while, and a detached call needs no reader. Heartbeats
   *   name the call all the same, since readers take them as proof that its worker is alive
   * @param isAskedNow whether to send a heartbeat at once: the call was queued so long that its client may be gone
   * @param onNoInterest called at most once
   * @returns stops following the call
   */
  follow(
    call: { callId: string; askAt: string; epoch: number; bears: readonly NoInterest[]; isAskedNow: boolean },
    onNoInterest: (why: NoInterest) => void,
  ): () => void {
    const { callId, askAt, epoch, bears } = call;
    const followed = this.#follow(newFollowed({ callId, askAt, epoch }, bears, onNoInterest, () => {}));
    if (call.isAskedNow) this.#ask(askAt, [followed]);
    return () => this.#release(followed);
  }

  /**
   * Asks before a call begins whose abort this worker may have missed. Resolves to false when its origin reports no interest, to true on a confirmation or when
   * no reply arrives in time.
   */
  async hasInterest({ callId, askAt, epoch }: { callId: string; askAt: string; epoch: number }, waitMs: number): Promise<boolean> {
    let isLeft = false;
    let end = () => {};
    await new Promise<void>((resolve) => {
      // A client may have resumed the call elsewhere: other gateways get the whole time to confirm, whatever the origin replies.
      const timer = setTimeout(resolve, waitMs);
      const onNoInterest = () => {
        isLeft = true;
      };
      const onInterest = () => {
        isLeft = false;
        resolve();
      };
      const asked = this.#follow(newFollowed({ callId, askAt, epoch }, [], onNoInterest, onInterest));
      asked.misses = MISSES - 1;
      end = () => {
        clearTimeout(timer);
        this.#release(asked);
      };
      this.#ask(askAt, [asked]);
    });
    end();
    return !isLeft;
  }

  /** Whether a gateway other than the origin has just confirmed interest: then an abort by the origin's reader does not end the call. */
  hasInterestElsewhere(callId: string): boolean {
    const nowMs = this.#deps.clock.nowMs();
    return (this.#followed.get(callId) ?? []).some(({ otherInterestAtMs }) => nowMs - otherInterestAtMs < OTHERS_MS);
  }

  stop(): Promise<void> {
    clearInterval(this.#timer);
    return this.#replies.stop();
  }

  #follow(followed: Followed): Followed {
    const same = this.#followed.get(followed.callId);
    this.#followed.set(followed.callId, same === undefined ? [followed] : [...same, followed]);
    return followed;
  }

  #tick(): void {
    this.#beginTick();
    if (!this.#deps.isReady()) return;
    const byOrigin = new Map<string, Followed[]>();
    for (const same of this.#followed.values()) {
      for (const followed of same) {
        if (followed.unanswered >= UNANSWERED && this.#giveUp(followed, 'unanswered')) continue;
        followed.unanswered += 1;
        const others = byOrigin.get(followed.askAt);
        if (others === undefined) byOrigin.set(followed.askAt, [followed]);
        else others.push(followed);
      }
    }
    for (const [askAt, calls] of byOrigin) {
      for (let at = 0; at < calls.length; at += MAX_CALLS_PER_HEARTBEAT) this.#ask(askAt, calls.slice(at, at + MAX_CALLS_PER_HEARTBEAT));
    }
  }

  /** Drops heartbeats that are too old, so that ended calls are not kept for replies that won't come. */
  #beginTick(): void {
    this.#ticks.push(this.#question + 1);
    if (this.#ticks.length <= OPEN_TICKS) return;
    this.#ticks.shift();
    const [oldest = 0] = this.#ticks;
    for (const question of this.#asked.keys()) {
      if (question >= oldest) break;
      this.#asked.delete(question);
    }
  }

  #ask(askAt: string, calls: Followed[]): void {
    this.#question += 1;
    this.#asked.set(this.#question, calls);
    this.#asked.delete(this.#question - OPEN_QUESTIONS);
    const body: Heartbeat = { v: 1, workerId: this.#deps.workerId, question: this.#question, calls: calls.map(({ callId }) => callId) };
    this.#deps.notices.publish(subjectOf(addresses.heartbeats, askAt), JSON.stringify(body));
  }

  #onReply(body: string): void {
    const reply = interestReply.safeParse(jsonIn(body));
    if (!reply.success) return;
    const { from, question, calls, epoch = null } = reply.data;
    const confirmed = new Set(calls);
    for (const followed of this.#asked.get(question) ?? []) {
      if (confirmed.has(followed.callId)) this.#confirmed(followed, from, question);
      else if (followed.askAt === from && (epoch === null || epoch >= followed.epoch)) this.#missed(followed, question);
    }
  }

  #confirmed(followed: Followed, from: string, question: number): void {
    followed.interestInQuestion = Math.max(followed.interestInQuestion, question);
    followed.misses = 0;
    followed.unanswered = 0;
    followed.onInterest();
    if (from !== followed.askAt) followed.otherInterestAtMs = this.#deps.clock.nowMs();
  }

  #missed(followed: Followed, question: number): void {
    // Late replies to older heartbeats count for nothing: a partition's former owner, resumed after a pause, doesn't know newer calls.
    if (question <= followed.interestInQuestion) return;
    followed.unanswered = 0;
    followed.misses += 1;
    if (followed.misses >= MISSES) this.#giveUp(followed, 'left');
  }

  /** @returns false when the call tolerates this result */
  #giveUp(followed: Followed, why: NoInterest): boolean {
    if (followed.bears.includes(why)) return false;
    if (this.#forget(followed)) followed.onNoInterest(why);
    return true;
  }

  /** Stops following and drops the callbacks, which open heartbeats would keep in memory. */
  #release(followed: Followed): void {
    this.#forget(followed);
    followed.onNoInterest = ignore;
    followed.onInterest = ignore;
  }

  /** @returns false when it was forgotten before */
  #forget(followed: Followed): boolean {
    const same = this.#followed.get(followed.callId);
    if (same?.includes(followed) !== true) return false;
    if (same.length === 1) this.#followed.delete(followed.callId);
    else
      this.#followed.set(
        followed.callId,
        same.filter((other) => other !== followed),
      );
    return true;
  }
}

function ignore(): void {}

function newFollowed(
  { callId, askAt, epoch }: Pick<Followed, 'callId' | 'askAt' | 'epoch'>,
  bears: readonly NoInterest[],
  onNoInterest: (why: NoInterest) => void,
  onInterest: () => void,
): Followed {
  return {
    callId,
    askAt,
    epoch,
    bears,
    onNoInterest,
    onInterest,
    misses: 0,
    unanswered: 0,
    otherInterestAtMs: Number.NEGATIVE_INFINITY,
    interestInQuestion: 0,
  };
}
