import type { NoticeBoard, Subscription } from '#bus/bus.ts';
import { type Heartbeat, interestReply, MAX_CALLS_PER_HEARTBEAT } from '#bus/messages/heartbeat.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { jsonIn } from '#shared/json-in.ts';
import { ObjectMap } from '#shared/object-map.ts';

/** Interval of heartbeats. Readers give a worker up after three without one. */
const HEARTBEAT_MS = 2_000;
/** A call ends after this many consecutive replies of its origin that omit it: one may have crossed a new reader in flight. */
const MAX_MISSES = 2;
/** A call ends after this many heartbeats without a confirmation or a reply of its origin: 30 s, for a client to resume elsewhere. */
const MAX_UNANSWERED = 15;
/** As many are left to an origin that is perhaps dead when readers have left the last other gateway. */
const LAST_UNANSWERED = 3;
/** How long the interest of a gateway other than the origin counts without a confirmation: three heartbeats. */
const OTHER_INTEREST_MS = 6_000;
/** Ticks, and heartbeats at most, with replies that still count. */
const RETAINED_TICKS = 4;
const MAX_OPEN_HEARTBEATS = 256;

/** `left`: the origin's replies omit the call. `unanswered`: neither a confirmation nor a reply of the origin. */
export type NoInterest = 'left' | 'unanswered';

interface FollowedCall {
  readonly callId: string;
  readonly heartbeatTo: string;
  /** As in ids of its frames. */
  readonly attempt: number;
  /** The requesting owner's; 0 for a client's call. */
  readonly epoch: number;
  /** All while it is asked who reads it. */
  tolerates: readonly NoInterest[];
  /** Dropped on release: open heartbeats keep this object, but not what the callbacks close over. */
  onNoInterest: (why: NoInterest) => void;
  onInterest: () => void;
  /** Consecutive replies of the origin that omit the call; a confirmation resets it. */
  misses: number;
  /** Heartbeats since the last confirmation or reply of the origin. */
  unanswered: number;
  /** The latest of an abort, a reply, and a resumption at the origin. True at first: it has begun the call for a reader. */
  isReadAtOrigin: boolean;
  /** Other gateways with a reader: when each last said so, by `performance.now()`. Null: none ever did. */
  others: Map<string, number> | null;
  /** The latest heartbeat with a confirmation. */
  lastConfirmedHeartbeat: number;
}

/** What heartbeats say of a call. */
type NamedCall = Pick<FollowedCall, 'callId' | 'heartbeatTo' | 'attempt' | 'epoch'>;
type CallToFollow = NamedCall & { tolerates: readonly NoInterest[]; sendsHeartbeatNow: boolean };

interface CallInterestDeps {
  notices: NoticeBoard;
  /** One token of a subject. */
  workerId: string;
  /** While false, no heartbeat counts as unanswered. They are sent all the same: they pass while only token frames have no connection. */
  isReady(): boolean;
  heartbeatMs?: number;
}

/**
 * Ends calls of this worker without a reader: a client's, at any gateway, or the actor that waits. Aborts may be lost and gateways may die, so heartbeats name
 * all calls in flight and readers reply. One timer and one subscription serve all.
 */
export class CallInterest {
  readonly #deps: CallInterestDeps;
  /** Several per id: an item may be redelivered while its first delivery winds down. */
  readonly #followed = new ObjectMap<readonly FollowedCall[]>();
  readonly #replies: Subscription;
  readonly #timer: NodeJS.Timeout;
  /** Calls by open heartbeat, oldest first: a reply counts for these alone. */
  readonly #openHeartbeats = new Map<number, readonly FollowedCall[]>();
  #heartbeatNumber = 0;
  /** Calls to name behind this tick's beginnings. */
  #soon: FollowedCall[] = [];
  /** First heartbeat of each open tick, oldest first. */
  readonly #ticks: number[] = [];

  constructor(deps: CallInterestDeps) {
    this.#deps = deps;
    this.#replies = deps.notices.subscribe(subjectOf(addresses.interestReplies, deps.workerId), (_subject, body) => this.#onReply(body));
    this.#timer = setInterval(() => this.#tick(), deps.heartbeatMs ?? HEARTBEAT_MS);
  }

  /**
   * @param heartbeatTo the origin of a client's call, the partition of an actor's
   * @param epoch of the requesting owner; a reply with an older epoch comes from a former owner that doesn't know the call
   * @param tolerates what doesn't end the call: an actor waits while its partition has no owner, a detached call needs no reader. Heartbeats name it all the same,
   *   as proof that its worker is alive
   * @param sendsHeartbeatNow names it in a heartbeat behind this tick: after long in the queue the client may have disconnected
   * @param onNoInterest called at most once
   * @returns stops following
   */
  follow(call: CallToFollow, onNoInterest: (why: NoInterest) => void): () => void {
    const followed = this.#follow(newFollowed(call, call.tolerates, onNoInterest));
    if (call.sendsHeartbeatNow) this.#sendHeartbeatSoon(followed);
    return () => this.#release(followed);
  }

  /**
   * Asks before a call begins, when an abort may have been missed. Readers that are noted meanwhile, and those that leave, count for what comes after.
   *
   * @param onNoInterest called at most once, for a call that has begun
   * @returns stops following; null: the origin reported no interest, and no other gateway confirmed it in time
   */
  async followIfRead(call: CallToFollow, onNoInterest: (why: NoInterest) => void, waitMs: number): Promise<(() => void) | null> {
    const followed = this.#follow(newFollowed(call, ['left', 'unanswered'], ignore));
    followed.misses = MAX_MISSES - 1;
    await new Promise<void>((resolve) => {
      // Other gateways, where a client may have resumed, get the whole time to confirm.
      const timer = setTimeout(resolve, waitMs);
      followed.onInterest = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#sendHeartbeat(call.heartbeatTo, [followed]);
    });
    if (followed.misses >= MAX_MISSES) {
      this.#release(followed);
      return null;
    }
    Object.assign(followed, { misses: 0, tolerates: call.tolerates, onNoInterest, onInterest: ignore });
    if (call.sendsHeartbeatNow) this.#sendHeartbeatSoon(followed);
    return () => this.#release(followed);
  }

  /** A client has resumed the call at a gateway. Heartbeats tell the same, up to two seconds later. */
  noteReader(callId: string, gateway: string): void {
    for (const followed of this.#followed.get(callId) ?? []) noteInterest(followed, gateway);
  }

  /**
   * After an abort: a gateway has no reader of the call any more.
   * @returns whether another gateway has one. The origin is believed to, until it says that it has none: if it is dead, its missing replies end the call
   */
  isReadWithout({ callId, heartbeatTo }: Pick<NamedCall, 'callId' | 'heartbeatTo'>, gateway: string): boolean {
    const same = this.#followed.get(callId);
    // Not followed any more: only the origin is known to have had a reader.
    if (same === undefined) return gateway !== heartbeatTo;
    // Each is told.
    return same.filter((followed) => isFollowedReadWithout(followed, gateway)).length > 0;
  }

  stop(): Promise<void> {
    clearInterval(this.#timer);
    return this.#replies.stop();
  }

  #follow(followed: FollowedCall): FollowedCall {
    const same = this.#followed.get(followed.callId);
    this.#followed.set(followed.callId, same === undefined ? [followed] : [...same, followed]);
    return followed;
  }

  #tick(): void {
    this.#beginTick();
    const isReady = this.#deps.isReady();
    const named: FollowedCall[] = [];
    for (const same of this.#followed.values()) {
      for (const followed of same) {
        if (isReady) {
          if (followed.unanswered >= MAX_UNANSWERED && this.#reportNoInterest(followed, 'unanswered')) continue;
          followed.unanswered += 1;
        }
        named.push(followed);
      }
    }
    this.#sendHeartbeats(named);
  }

  /** Of a burst that has waited, one heartbeat: each costs this process, the broker and the gateway a message and its reply. */
  #sendHeartbeatSoon(followed: FollowedCall): void {
    this.#soon.push(followed);
    if (this.#soon.length > 1) return;
    setImmediate(() => {
      const soon = this.#soon;
      this.#soon = [];
      this.#sendHeartbeats(soon.filter((one) => this.#followed.get(one.callId)?.includes(one) === true));
    });
  }

  #sendHeartbeats(named: readonly FollowedCall[]): void {
    const byOrigin = new Map<string, FollowedCall[]>();
    for (const followed of named) {
      const others = byOrigin.get(followed.heartbeatTo);
      if (others === undefined) byOrigin.set(followed.heartbeatTo, [followed]);
      else others.push(followed);
    }
    for (const [heartbeatTo, calls] of byOrigin) {
      for (let at = 0; at < calls.length; at += MAX_CALLS_PER_HEARTBEAT) this.#sendHeartbeat(heartbeatTo, calls.slice(at, at + MAX_CALLS_PER_HEARTBEAT));
    }
  }

  /** Drops old heartbeats, which would keep ended calls in memory. */
  #beginTick(): void {
    this.#ticks.push(this.#heartbeatNumber + 1);
    if (this.#ticks.length <= RETAINED_TICKS) return;
    this.#ticks.shift();
    const [oldest = 0] = this.#ticks;
    for (const heartbeatNumber of this.#openHeartbeats.keys()) {
      if (heartbeatNumber >= oldest) break;
      this.#openHeartbeats.delete(heartbeatNumber);
    }
  }

  #sendHeartbeat(heartbeatTo: string, calls: FollowedCall[]): void {
    this.#heartbeatNumber += 1;
    this.#openHeartbeats.set(this.#heartbeatNumber, calls);
    this.#openHeartbeats.delete(this.#heartbeatNumber - MAX_OPEN_HEARTBEATS);
    const body: Heartbeat = {
      v: 1,
      workerId: this.#deps.workerId,
      question: this.#heartbeatNumber,
      calls: calls.map(({ callId }) => callId),
      attempts: calls.map(({ attempt }) => attempt),
    };
    this.#deps.notices.publish(subjectOf(addresses.heartbeats, heartbeatTo), JSON.stringify(body));
  }

  #onReply(body: string): void {
    const reply = interestReply.safeParse(jsonIn(body));
    if (!reply.success) return;
    const { from, question: heartbeatNumber, calls, epoch = null } = reply.data;
    const confirmed = new Set(calls);
    for (const followed of this.#openHeartbeats.get(heartbeatNumber) ?? []) {
      if (confirmed.has(followed.callId)) this.#confirmed(followed, from, heartbeatNumber);
      else if (followed.heartbeatTo === from && (epoch === null || epoch >= followed.epoch)) this.#missed(followed, heartbeatNumber);
    }
  }

  #confirmed(followed: FollowedCall, from: string, heartbeatNumber: number): void {
    followed.lastConfirmedHeartbeat = Math.max(followed.lastConfirmedHeartbeat, heartbeatNumber);
    followed.misses = 0;
    followed.unanswered = 0;
    followed.onInterest();
    noteInterest(followed, from);
  }

  #missed(followed: FollowedCall, heartbeatNumber: number): void {
    // A partition's former owner, resumed after a pause, replies to older heartbeats and doesn't know newer calls.
    if (heartbeatNumber <= followed.lastConfirmedHeartbeat) return;
    followed.unanswered = 0;
    followed.isReadAtOrigin = false;
    followed.misses += 1;
    if (followed.misses >= MAX_MISSES) this.#reportNoInterest(followed, 'left');
  }

  /** @returns false when the call tolerates it */
  #reportNoInterest(followed: FollowedCall, why: NoInterest): boolean {
    if (followed.tolerates.includes(why)) return false;
    if (this.#remove(followed)) followed.onNoInterest(why);
    return true;
  }

  #release(followed: FollowedCall): void {
    this.#remove(followed);
    followed.onNoInterest = ignore;
    followed.onInterest = ignore;
  }

  #remove(followed: FollowedCall): boolean {
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

function noteInterest(followed: FollowedCall, gateway: string): void {
  if (gateway === followed.heartbeatTo) {
    followed.isReadAtOrigin = true;
    return;
  }
  followed.others ??= new Map();
  followed.others.set(gateway, performance.now());
}

function isFollowedReadWithout(followed: FollowedCall, gateway: string): boolean {
  if (gateway === followed.heartbeatTo) followed.isReadAtOrigin = false;
  else followed.others?.delete(gateway);
  const now = performance.now();
  for (const notedAt of followed.others?.values() ?? []) if (now - notedAt < OTHER_INTEREST_MS) return true;
  if (followed.isReadAtOrigin) followed.unanswered = Math.max(followed.unanswered, MAX_UNANSWERED - LAST_UNANSWERED);
  return followed.isReadAtOrigin;
}

function newFollowed(
  { callId, heartbeatTo, attempt, epoch }: NamedCall,
  tolerates: readonly NoInterest[],
  onNoInterest: (why: NoInterest) => void,
): FollowedCall {
  return {
    callId,
    heartbeatTo,
    attempt,
    epoch,
    tolerates,
    onNoInterest,
    onInterest: ignore,
    misses: 0,
    unanswered: 0,
    isReadAtOrigin: true,
    others: null,
    lastConfirmedHeartbeat: 0,
  };
}
