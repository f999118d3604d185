import type { Bus, Listening, Subscription } from '#bus/bus.ts';
import { partitionOf } from '#bus/partition.ts';
import { addresses, patternOf, subjectOf } from '#bus/subjects.ts';
import { ObjectMap } from '#shared/object-map.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { within } from '#shared/within.ts';
import { limits, type Waits } from '../limits.ts';
import { NewestEvents } from './newest-events.ts';
import { noticeOf } from './notice.ts';
import { everything, type LoggedEvent, type SessionLog } from './session-log.ts';

interface FeedSubscriber {
  /** The events from the previous `head` up to, and without, `head`. */
  onEvents(events: readonly LoggedEvent[], head: number): void;
  /** Called at most once, and last. */
  onDeleted(): void;
}

export interface FeedReader {
  /** Offset of the next event; null until the log was read. */
  readonly head: number | null;
  /** From memory; null when the log must be read. */
  newest(offset: number): readonly LoggedEvent[] | null;
  /** Await it before the first read of the log: later appends are notified. Resolves within `subscribedMs`. */
  ready(): Promise<void>;
  /**
   * Reports the head that a read returned.
   * @param before `head` when that read began; a log that is now shorter was restored to an earlier state
   */
  noteHead(head: number, before: number | null): void;
  /** Notifies of everything past the present `head`. */
  subscribe(subscriber: FeedSubscriber): void;
  release(): void;
}

interface Feed {
  readonly sessionId: string;
  readonly partition: number;
  readonly subscription: Listening;
  readonly subscribers: FeedSubscriber[];
  readers: number;
  head: number | null;
  readonly newest: NewestEvents;
  /** The head by the notices. */
  expected: number;
  /** Changes of stored events that were noticed. */
  changes: number;
  /** `updated_at` of the session at the last comparison; null before the first. */
  comparedAtMs: number | null;
  isDeleted: boolean;
  isFetching: boolean;
  eviction: NodeJS.Timeout | null;
}

interface EventFeedsDeps {
  bus: Bus;
  sessionLog: SessionLog;
  waits: Waits;
  log: Log;
}

/**
 * Follows the logs of sessions with readers: one subscription a session, kept for `idleFeedMs` after the last reader so that the next poll needs no query.
 * Lost notices are made up for by comparing heads with the database: soon after the beginning, after a take-over, on reconnect, and periodically.
 */
export class EventFeeds {
  readonly #deps: EventFeedsDeps;
  #feeds = new ObjectMap<Feed>();
  /** Feeds without readers, longest idle first. */
  readonly #idle = new Set<Feed>();
  /** Each with whether changes of stored events are looked for, too. */
  readonly #toCompare = new Map<Feed, boolean>();
  #isComparing = false;
  #subscriptions: Subscription[] = [];
  #checks: NodeJS.Timeout[] = [];
  /** Since the last comparison of those that began. */
  #begun = new Set<Feed>();
  #begunBefore = new Set<Feed>();

  constructor(deps: EventFeedsDeps) {
    this.#deps = deps;
  }

  open(): void {
    const { bus, waits } = this.#deps;
    this.#subscriptions = [
      bus.notices.subscribe(patternOf(addresses.partitions), (subject) => this.#onOwnerChange(subject)),
      bus.onReconnect(() => this.compareAll()),
    ];
    this.#checks = [setInterval(() => this.compareAll(), waits.checkFeedsMs).unref(), setInterval(() => this.#compareBegun(), waits.checkBegunFeedsMs).unref()];
  }

  async close(): Promise<void> {
    for (const check of this.#checks) clearInterval(check);
    for (const feed of this.#feeds.values()) if (feed.eviction !== null) clearTimeout(feed.eviction);
    const subscriptions = [...this.#subscriptions, ...this.#feeds.values().map((feed) => feed.subscription)];
    this.#feeds = new ObjectMap();
    this.#idle.clear();
    this.#toCompare.clear();
    this.#begun.clear();
    this.#begunBefore.clear();
    await Promise.all(subscriptions.map((subscription) => subscription.stop()));
  }

  /** Subscribes before anything is read, so that nothing falls in between. @throws `bus.invalid_subject`, `bus.closed` */
  read(sessionId: string): FeedReader {
    const feed = this.#feeds.get(sessionId) ?? this.#begin(sessionId);
    feed.readers += 1;
    this.#idle.delete(feed);
    if (feed.eviction !== null) clearTimeout(feed.eviction);
    let own: FeedSubscriber | null = null;
    const release = () => {
      const index = own === null ? -1 : feed.subscribers.indexOf(own);
      if (index !== -1) feed.subscribers.splice(index, 1);
      feed.readers -= 1;
      if (feed.readers === 0) this.#retain(feed);
    };
    return {
      get head() {
        return feed.head;
      },
      newest: (offset) => feed.newest.from(offset),
      // On a lost connection `onReconnect` compares heads.
      ready: () => this.#subscribed(feed),
      noteHead: (head, before) => this.#noteHead(feed, head, before),
      subscribe: (subscriber) => {
        if (feed.isDeleted) {
          subscriber.onDeleted();
          return;
        }
        own = subscriber;
        feed.subscribers.push(subscriber);
      },
      release,
    };
  }

  /** Reports a head that was read outside the feed. */
  noteHead(sessionId: string, head: number): void {
    const feed = this.#feeds.get(sessionId);
    if (feed !== undefined && feed.head !== null) this.#reach(feed, head);
  }

  /** Events of the session that were read before may have changed or be deleted. */
  noteChange(sessionId: string): void {
    const feed = this.#feeds.get(sessionId);
    if (feed !== undefined) this.#onChanged(feed);
  }

  compareAll(): void {
    this.#compare(this.#feeds.values());
  }

  #begin(sessionId: string): Feed {
    const subscription = this.#deps.bus.notices.subscribe(subjectOf(addresses.notices, sessionId), (_subject, body) => this.#onNotice(feed, body));
    const feed: Feed = {
      sessionId,
      partition: partitionOf(sessionId),
      subscription,
      subscribers: [],
      readers: 0,
      head: null,
      newest: new NewestEvents(),
      expected: 0,
      changes: 0,
      comparedAtMs: null,
      isDeleted: false,
      isFetching: false,
      eviction: null,
    };
    this.#feeds.set(sessionId, feed);
    this.#begun.add(feed);
    return feed;
  }

  async #subscribed(feed: Feed): Promise<void> {
    let isLate = false;
    const confirmed = feed.subscription.ready().then(() => {
      if (isLate) this.#begun.add(feed);
    });
    await within(this.#deps.waits.subscribedMs, confirmed, () => {
      isLate = true;
    });
  }

  /**
   * Compares the feeds that began one to two intervals ago: their first read may have been before the subscription. A busy broker confirms it late, and the other
   * servers of a cluster learn of it behind that.
   */
  #compareBegun(): void {
    const open = [...this.#begunBefore].filter((feed) => this.#feeds.get(feed.sessionId) === feed);
    // Heads alone: behind a change all that is in memory would have to be read again.
    this.#compare(
      open.filter(({ head }) => head !== null),
      false,
    );
    const unread = open.filter(({ head }) => head === null);
    this.#begunBefore = new Set([...unread, ...this.#begun]);
    this.#begun = new Set();
  }

  #retain(feed: Feed): void {
    // Never read: most likely there is no such session.
    if (feed.head === null || this.#feeds.get(feed.sessionId) !== feed) {
      this.#end(feed);
      return;
    }
    this.#idle.add(feed);
    feed.eviction = setTimeout(() => this.#end(feed), this.#deps.waits.idleFeedMs).unref();
    const [oldest] = this.#idle;
    if (this.#idle.size > limits.idleFeeds && oldest !== undefined) this.#end(oldest);
  }

  #end(feed: Feed): void {
    if (feed.eviction !== null) clearTimeout(feed.eviction);
    this.#idle.delete(feed);
    this.#toCompare.delete(feed);
    if (this.#feeds.get(feed.sessionId) === feed) this.#feeds.delete(feed.sessionId);
    feed.subscription.stop().catch((error) => this.#deps.log.warn({ err: error, session_id: feed.sessionId }, 'a subscription could not be ended'));
  }

  #noteHead(feed: Feed, head: number, before: number | null): void {
    if (before !== null && head < before) {
      // The database was restored to an earlier state.
      feed.head = head;
      feed.newest.clear();
      feed.expected = head;
    } else if (feed.head === null) {
      feed.head = head;
      this.#reach(feed, feed.expected);
    } else this.#reach(feed, head);
  }

  #onNotice(feed: Feed, body: string): void {
    const notice = noticeOf(body);
    if (notice === null) {
      this.#deps.log.warn({ session_id: feed.sessionId }, 'a notice could not be parsed');
      return;
    }
    if (notice.isDeleted) {
      this.#onDeleted(feed);
      return;
    }
    if (notice.isChanged) this.#onChanged(feed);
    const next = notice.last + 1;
    // Without a gap no read is needed.
    const isNext = feed.head !== null && notice.first <= feed.head && next > feed.head;
    const events = isNext ? notice.events : null;
    if (events === null) this.#reach(feed, next);
    else this.#emit(feed, events, next);
  }

  /** Readers read stored events again; what they already have stays as it was. */
  #onChanged(feed: Feed): void {
    feed.changes += 1;
    feed.newest.clear();
  }

  #onDeleted(feed: Feed): void {
    if (feed.isDeleted) return;
    feed.isDeleted = true;
    if (this.#feeds.get(feed.sessionId) === feed) this.#feeds.delete(feed.sessionId);
    for (const subscriber of feed.subscribers.splice(0)) subscriber.onDeleted();
    if (this.#idle.has(feed)) this.#end(feed);
  }

  #reach(feed: Feed, head: number): void {
    feed.expected = Math.max(feed.expected, head);
    if (feed.head === null || feed.expected <= feed.head) return;
    if (feed.subscribers.length === 0) {
      feed.head = feed.expected;
      feed.newest.clear();
    } else if (!feed.isFetching) void this.#fetch(feed);
  }

  async #fetch(feed: Feed): Promise<void> {
    feed.isFetching = true;
    try {
      while (feed.head !== null && feed.head < feed.expected && feed.subscribers.length > 0) {
        const from = feed.head;
        const { expected, changes } = feed;
        const page = await this.#deps.sessionLog.read(feed.sessionId, everything, from, limits.streamPageEvents);
        if (page === null) {
          this.#onDeleted(feed);
          return;
        }
        if (feed.changes !== changes) continue;
        this.#emit(feed, page.events, page.next);
        // Nothing read, no further notice: the log is shorter than announced.
        if (page.next <= from && feed.expected === expected) feed.expected = feed.head;
      }
    } catch (error) {
      this.#deps.log.warn({ err: error, session_id: feed.sessionId }, 'missed events could not be read yet');
    } finally {
      feed.isFetching = false;
    }
  }

  /** Skips repeats: a notice may have come during the fetch. */
  #emit(feed: Feed, events: readonly LoggedEvent[], head: number): void {
    const from = feed.head ?? 0;
    if (head <= from) return;
    feed.head = head;
    const fresh = events.filter(({ offset }) => offset >= from);
    if (fresh.length === head - from) feed.newest.add(fresh);
    else feed.newest.clear();
    for (const subscriber of [...feed.subscribers]) subscriber.onEvents(fresh, head);
  }

  /** The old owner's pending notices are lost. */
  #onOwnerChange(subject: string): void {
    const partition = Number(subject.slice(subject.lastIndexOf('.') + 1));
    this.#compare(this.#feeds.values().filter((feed) => feed.partition === partition));
  }

  /** Partitions change owners in groups: one query per tick. */
  #compare(feeds: Iterable<Feed>, isWithChanges = true): void {
    for (const feed of feeds) this.#toCompare.set(feed, isWithChanges || (this.#toCompare.get(feed) ?? false));
    if (this.#isComparing || this.#toCompare.size === 0) return;
    this.#isComparing = true;
    setImmediate(() => void this.#comparePending());
  }

  async #comparePending(): Promise<void> {
    try {
      while (this.#toCompare.size > 0) {
        const some = [...this.#toCompare].slice(0, limits.sessionsPerCheck);
        for (const [feed] of some) this.#toCompare.delete(feed);
        await this.#compareSome(some);
      }
    } finally {
      this.#isComparing = false;
    }
  }

  async #compareSome(feeds: readonly (readonly [Feed, boolean])[]): Promise<void> {
    // A feed without a head learns all from its first read, which is in flight.
    const before = new Map(feeds.map(([feed]) => [feed, feed.head]));
    try {
      const heads = await this.#deps.sessionLog.heads(feeds.map(([{ sessionId }]) => sessionId));
      for (const [feed, isWithChanges] of feeds) {
        const found = heads.get(feed.sessionId);
        const known = before.get(feed) ?? null;
        if (known === null) continue;
        if (found === undefined) {
          this.#onDeleted(feed);
          continue;
        }
        // The notice of a change may have been lost.
        if (isWithChanges) {
          if (found.changedAtMs !== feed.comparedAtMs) this.#onChanged(feed);
          feed.comparedAtMs = found.changedAtMs;
        }
        this.#noteHead(feed, found.head, known);
      }
    } catch (error) {
      this.#deps.log.warn({ err: error, sessions: feeds.length }, 'the heads of open sessions could not be read yet');
    }
  }
}
