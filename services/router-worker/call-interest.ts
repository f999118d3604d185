import type { NoticeBoard, Subscription } from '#bus/bus.ts';
import { type Heartbeat, interestReply, MAX_CALLS_PER_HEARTBEAT } from '#bus/messages/heartbeat.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import type { Clock } from '#shared/clock.ts';
import { jsonIn } from '#shared/json-in.ts';
import { ObjectMap } from '#shared/object-map.ts';

/** Interval of heartbeats. Readers give a worker up after three without one. */
const ASK_MS = 2_000;
/** A call ends after this many consecutive replies of its origin that omit it: one may have crossed a new reader in flight. */
const MISSES = 2;
/** A call ends after this many heartbeats without a confirmation or a reply of its origin: 30 s, for a client to resume elsewhere. */
const UNANSWERED = 15;
/** How long another gateway's confirmation overrides an abort. */
const OTHERS_MS = 6_000;
/** Ticks, and heartbeats at most, with replies that still count. */
const OPEN_TICKS = 4;
const OPEN_QUESTIONS = 256;

/** `left`: the origin's replies omit the call. `unanswered`: neither a confirmation nor a reply of the origin. */
export type NoInterest = 'left' | 'unanswered';

interface Followed {
  readonly callId: string;
  readonly askAt: string;
  /** The requesting owner's; 0 for a client's call. */
  readonly epoch: number;
  readonly bears: readonly NoInterest[];
  /** Dropped on release: open heartbeats keep this object, but not what the callbacks close over. */
  onNoInterest: (why: NoInterest) => void;
  onInterest: () => void;
  /** Consecutive replies of the origin that omit the call; a confirmation resets it. */
  misses: number;
  /** Heartbeats since the last confirmation or reply of the origin. */
  unanswered: number;
  otherInterestAtMs: number;
  /** The latest heartbeat with a confirmation. */
  interestInQuestion: number;
}

interface CallInterestDeps {
  notices: NoticeBoard;
  /** One token of a subject. */
  workerId: string;
  clock: Clock;
  /** While false, no heartbeat is sent and none counts as unanswered. */
  isReady(): boolean;
  askMs?: number;
}

/**
 * Ends calls of this worker without a reader: a client's, at any gateway, or the actor that waits. Aborts may be lost and gateways may die, so heartbeats name
 * all calls in flight and readers reply. One timer and one subscription serve all.
 */
export class CallInterest {
  readonly #deps: CallInterestDeps;
  /** Several per id: an item may be redelivered while its first delivery winds down. */
  readonly #followed = new ObjectMap<readonly Followed[]>();
  readonly #replies: Subscription;
  readonly #timer: NodeJS.Timeout;
  /** Calls by open heartbeat, oldest first: a reply counts for these alone. */
  readonly #asked = new Map<number, readonly Followed[]>();
  #question = 0;
  /** First heartbeat of each open tick, oldest first. */
  readonly #ticks: number[] = [];

  constructor(deps: CallInterestDeps) {
    this.#deps = deps;
    this.#replies = deps.notices.subscribe(subjectOf(addresses.interestReplies, deps.workerId), (_subject, body) => this.#onReply(body));
    this.#timer = setInterval(() => this.#tick(), deps.askMs ?? ASK_MS);
  }

  /**
   * @param askAt the origin of a client's call, the partition of an actor's
   * @param epoch of the requesting owner; a reply with an older epoch comes from a former owner that doesn't know the call
   * @param bears what doesn't end the call: an actor waits while its partition has no owner, a detached call needs no reader. Heartbeats name it all the same,
   *   as proof that its worker is alive
   * @param isAskedNow sends a heartbeat at once: after long in the queue the client may have disconnected
   * @param onNoInterest called at most once
   * @returns stops following
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

  /** Asks before a call begins when an abort may have been missed. False: the origin reported no interest. True: confirmed, or no reply in time. */
  async hasInterest({ callId, askAt, epoch }: { callId: string; askAt: string; epoch: number }, waitMs: number): Promise<boolean> {
    let isLeft = false;
    let end = () => {};
    await new Promise<void>((resolve) => {
      // Other gateways, where a client may have resumed, get the whole time to confirm.
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

  /** Whether another gateway has just confirmed the call: then an abort by the origin's reader doesn't end it. */
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

  /** Drops old heartbeats, which would keep ended calls in memory. */
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
    // A partition's former owner, resumed after a pause, replies to older heartbeats and doesn't know newer calls.
    if (question <= followed.interestInQuestion) return;
    followed.unanswered = 0;
    followed.misses += 1;
    if (followed.misses >= MISSES) this.#giveUp(followed, 'left');
  }

  /** @returns false when the call tolerates it */
  #giveUp(followed: Followed, why: NoInterest): boolean {
    if (followed.bears.includes(why)) return false;
    if (this.#forget(followed)) followed.onNoInterest(why);
    return true;
  }

  #release(followed: Followed): void {
    this.#forget(followed);
    followed.onNoInterest = ignore;
    followed.onInterest = ignore;
  }

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
