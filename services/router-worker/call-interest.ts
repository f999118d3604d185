import type { NoticeBoard, Subscription } from '#bus/bus.ts';
import { type Heartbeat, interestReply, MAX_CALLS_PER_HEARTBEAT } from '#bus/messages/heartbeat.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import type { Clock } from '#shared/clock.ts';
import { jsonIn } from '#shared/json-in.ts';
import { ObjectMap } from '#shared/object-map.ts';

/** How often is asked who holds the calls. Readers take a worker for dead that has been silent for three times as long. */
const ASK_MS = 2_000;
/** Answers of a call's origin that must leave it out before it is given up: one may have crossed something on its way. */
const MISSES = 2;
/** Questions without any answer after which a call has nobody left: 30 s, for a client to resume it elsewhere. */
const UNANSWERED = 15;
/** A client's abort does not end a call that another gateway has spoken up for within this time. */
const OTHERS_MS = 6_000;
/** Rounds whose questions may still be answered, and questions at most. What comes later is no answer any more. */
const OPEN_TICKS = 4;
const OPEN_QUESTIONS = 256;

/** Why nobody wants a call any more. */
export type NoInterest = 'left' | 'unanswered';

interface Followed {
  readonly callId: string;
  readonly askAt: string;
  /** Of the owner who asked for an actor's call; 0 for a client's. */
  readonly epoch: number;
  readonly bears: readonly NoInterest[];
  /** Both are let go of once nobody wants to hear of the call: questions keep this for as long as they are open. */
  onNoInterest: (why: NoInterest) => void;
  onInterest: () => void;
  /** Answers of the origin in a row that leave it out, while nobody else speaks up. */
  misses: number;
  /** Questions in a row to which nobody has said that it is held, and the origin has said nothing. */
  unanswered: number;
  otherInterestAtMs: number;
  /** The latest question to which somebody has said that it is held. */
  interestInQuestion: number;
}

interface CallInterestDeps {
  notices: NoticeBoard;
  /** This worker's name, one token of a subject. */
  workerId: string;
  clock: Clock;
  /** Whether questions reach anybody: time without a bus counts against no call. */
  isReady(): boolean;
  askMs?: number;
}

/**
 * A call lives while somebody holds it: a client's reader, at any gateway, or the actor that waits for it. Aborts may be lost and gateways
 * die, so every worker asks about the calls that it runs; its question is at the same time its sign of life. One timer and one subscription
 * for all of them.
 */
export class CallInterest {
  readonly #deps: CallInterestDeps;
  /** An item that was delivered again while the first worker still lets go of it is the same call twice. */
  readonly #followed = new ObjectMap<readonly Followed[]>();
  readonly #replies: Subscription;
  readonly #timer: NodeJS.Timeout;
  /** Whom each of the latest questions named, the oldest first: an answer says nothing of calls that it was not asked about. */
  readonly #asked = new Map<number, readonly Followed[]>();
  #question = 0;
  /** The first question of each round that is open, the oldest first. */
  readonly #ticks: number[] = [];

  constructor(deps: CallInterestDeps) {
    this.#deps = deps;
    this.#replies = deps.notices.subscribe(subjectOf(addresses.interestReplies, deps.workerId), (_subject, body) => this.#onReply(body));
    this.#timer = setInterval(() => this.#tick(), deps.askMs ?? ASK_MS);
  }

  /**
   * @param askAt the origin of a client's call, the partition of an actor's
   * @param epoch of the owner who asked for an actor's call. Whoever answers under an older one has lost the partition, and knows nothing of it
   * @param bears what does not end the call: an actor waits though its partition is without an owner for a while, and nobody need hold a
   *   detached one. It is asked about all the same, since that is its sign of life
   * @param isAskedNow whether to ask at once: the call has waited so long that its client may be gone
   * @param onNoInterest called once at most
   * @returns ends it
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
   * Asks before a call is begun whose abort may have been missed here. Resolves to false when its origin says that nobody holds it, to true
   * when somebody does, or nobody answers in time.
   */
  async hasInterest({ callId, askAt, epoch }: { callId: string; askAt: string; epoch: number }, waitMs: number): Promise<boolean> {
    let isLeft = false;
    let end = () => {};
    await new Promise<void>((resolve) => {
      // A client may have resumed the call elsewhere, so whoever holds it is given the whole time to say so.
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

  /** Whether a gateway other than the call's own has just said that it holds it: then an abort of the other reader's is none. */
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

  /** Calls that are over long since are not kept for answers that won't come. */
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
    // A partition's former owner that was paused answers what it was asked meanwhile, and knows nothing of calls that are newer.
    if (question <= followed.interestInQuestion) return;
    followed.unanswered = 0;
    followed.misses += 1;
    if (followed.misses >= MISSES) this.#giveUp(followed, 'left');
  }

  /** @returns false when the call bears it */
  #giveUp(followed: Followed, why: NoInterest): boolean {
    if (followed.bears.includes(why)) return false;
    if (this.#forget(followed)) followed.onNoInterest(why);
    return true;
  }

  /** The call is over, or its question answered: what is kept for open questions does not keep all that the call was. */
  #release(followed: Followed): void {
    this.#forget(followed);
    followed.onNoInterest = ignore;
    followed.onInterest = ignore;
  }

  /** @returns false when it is forgotten already */
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

/** One of which nothing was said yet. */
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
