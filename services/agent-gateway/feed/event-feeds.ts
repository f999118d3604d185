import type { Bus, Listening, Subscription } from '#bus/bus.ts';
import { partitionOf } from '#bus/partition.ts';
import { addresses, patternOf, subjectOf } from '#bus/subjects.ts';
import { ObjectMap } from '#shared/object-map.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { limits, type Waits } from '../limits.ts';
import { within } from '../within.ts';
import { NewestEvents } from './newest-events.ts';
import { noticeOf } from './notice.ts';
import { everything, type LoggedEvent, type SessionLog } from './session-log.ts';

interface FeedListener {
  /** News in the order of the log: the events from where the last call ended up to, and without, `head`. */
  onEvents(events: readonly LoggedEvent[], head: number): void;
  /** The session was deleted: nothing comes any more. Called once at most. */
  onDeleted(): void;
}

/** One reader's hold on a session's feed. */
export interface FeedReader {
  /** Offset of the next event, as far as this process knows; null until somebody has read the log. */
  readonly head: number | null;
  /** All that there is from an offset on, when it is still in mind; null when the log has to be asked. */
  newest(offset: number): readonly LoggedEvent[] | null;
  /** To be awaited before the first read of the log: what is appended from then on is heard of. Resolves soon, come what may. */
  ready(): Promise<void>;
  /**
   * Tells what a read of the log has shown.
   * @param before the `head` above when that read began: a log that is shorter than that is not what it was said to be
   */
  noteHead(head: number, before: number | null): void;
  /** From here on the listener hears of everything past the present `head`. */
  listen(listener: FeedListener): void;
  release(): void;
}

interface Feed {
  readonly sessionId: string;
  readonly partition: number;
  readonly subscription: Listening;
  /** In the order in which they came, and are told. */
  readonly listeners: FeedListener[];
  readers: number;
  head: number | null;
  /** The events before the head that were told last. */
  readonly newest: NewestEvents;
  /** The log is said to reach at least this far. */
  expected: number;
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
 * Follows the logs of sessions that somebody reads: one subscription a session, however many readers it has, kept for a while after
 * the last of them so that the next poll needs no query. Notices may be lost; who follows a partition's change of owner, looks when the
 * bus is back, and compares heads with the database now and then, misses nothing for long.
 */
export class EventFeeds {
  readonly #deps: EventFeedsDeps;
  #feeds = new ObjectMap<Feed>();
  /** Feeds without readers, the one that has waited longest first. */
  readonly #idle = new Set<Feed>();
  /** Feeds whose heads are to be compared with the database. */
  readonly #doubted = new Set<Feed>();
  #isComparing = false;
  #around: Subscription[] = [];
  #check: NodeJS.Timeout | null = null;

  constructor(deps: EventFeedsDeps) {
    this.#deps = deps;
  }

  open(): void {
    const { bus, waits } = this.#deps;
    this.#around = [
      bus.notices.subscribe(patternOf(addresses.partitions), (subject) => this.#onOwnerChange(subject)),
      bus.onReconnect(() => this.compareAll()),
    ];
    this.#check = setInterval(() => this.compareAll(), waits.checkFeedsMs).unref();
  }

  async close(): Promise<void> {
    if (this.#check !== null) clearInterval(this.#check);
    for (const feed of this.#feeds.values()) if (feed.eviction !== null) clearTimeout(feed.eviction);
    const subscriptions = [...this.#around, ...this.#feeds.values().map((feed) => feed.subscription)];
    this.#feeds = new ObjectMap();
    this.#idle.clear();
    this.#doubted.clear();
    await Promise.all(subscriptions.map((subscription) => subscription.stop()));
  }

  /** Subscribes before anything is read, so that nothing falls in between. @throws `bus.invalid_subject`, `bus.closed` */
  read(sessionId: string): FeedReader {
    const feed = this.#feeds.get(sessionId) ?? this.#begin(sessionId);
    feed.readers += 1;
    this.#idle.delete(feed);
    if (feed.eviction !== null) clearTimeout(feed.eviction);
    let mine: FeedListener | null = null;
    const release = () => {
      const index = mine === null ? -1 : feed.listeners.indexOf(mine);
      if (index !== -1) feed.listeners.splice(index, 1);
      feed.readers -= 1;
      if (feed.readers === 0) this.#retain(feed);
    };
    return {
      get head() {
        return feed.head;
      },
      newest: (offset) => feed.newest.from(offset),
      ready: async () => {
        // A bus that is away in between is found out when it is back.
        await within(feed.subscription.ready(), this.#deps.waits.subscribedMs);
      },
      noteHead: (head, before) => this.#noteHead(feed, head, before),
      listen: (listener) => {
        if (feed.isDeleted) {
          listener.onDeleted();
          return;
        }
        mine = listener;
        feed.listeners.push(listener);
      },
      release,
    };
  }

  /** Tells what somebody who does not follow the session has seen in its log. */
  noteHead(sessionId: string, head: number): void {
    const feed = this.#feeds.get(sessionId);
    if (feed !== undefined && feed.head !== null) this.#reach(feed, head);
  }

  /** Notices may have been lost, whosever they were: looks at all sessions that are followed. */
  compareAll(): void {
    this.#compare(this.#feeds.values());
  }

  #begin(sessionId: string): Feed {
    const subscription = this.#deps.bus.notices.subscribe(subjectOf(addresses.notices, sessionId), (_subject, body) => this.#onNotice(feed, body));
    const feed: Feed = {
      sessionId,
      partition: partitionOf(sessionId),
      subscription,
      listeners: [],
      readers: 0,
      head: null,
      newest: new NewestEvents(),
      expected: 0,
      isDeleted: false,
      isFetching: false,
      eviction: null,
    };
    this.#feeds.set(sessionId, feed);
    return feed;
  }

  #retain(feed: Feed): void {
    // Nobody has read this log: most likely there is no such session.
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
    this.#doubted.delete(feed);
    if (this.#feeds.get(feed.sessionId) === feed) this.#feeds.delete(feed.sessionId);
    feed.subscription.stop().catch((error) => this.#deps.log.warn({ err: error, session_id: feed.sessionId }, 'a subscription did not end'));
  }

  #noteHead(feed: Feed, head: number, before: number | null): void {
    if (before !== null && head < before) {
      // Said of a store that has since been put back to an earlier day. What comes from here on is news.
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
      this.#deps.log.warn({ session_id: feed.sessionId }, 'a notice was not understood');
      return;
    }
    if (notice.isDeleted) {
      this.#lose(feed);
      return;
    }
    const next = notice.last + 1;
    // Without a gap before it the log itself need not be asked.
    const isNext = feed.head !== null && notice.first <= feed.head && next > feed.head;
    const events = isNext ? notice.events : null;
    if (events === null) this.#reach(feed, next);
    else this.#emit(feed, events, next);
  }

  /** The session is no more. Whoever asks from now on learns that from the database. */
  #lose(feed: Feed): void {
    if (feed.isDeleted) return;
    feed.isDeleted = true;
    if (this.#feeds.get(feed.sessionId) === feed) this.#feeds.delete(feed.sessionId);
    for (const listener of feed.listeners.splice(0)) listener.onDeleted();
    if (this.#idle.has(feed)) this.#end(feed);
  }

  /** The log is said to reach up to `head`: what is missing is fetched, if anybody listens. */
  #reach(feed: Feed, head: number): void {
    feed.expected = Math.max(feed.expected, head);
    if (feed.head === null || feed.expected <= feed.head) return;
    if (feed.listeners.length === 0) {
      feed.head = feed.expected;
      feed.newest.clear();
    } else if (!feed.isFetching) void this.#fetch(feed);
  }

  async #fetch(feed: Feed): Promise<void> {
    feed.isFetching = true;
    try {
      while (feed.head !== null && feed.head < feed.expected && feed.listeners.length > 0) {
        const from = feed.head;
        const { expected } = feed;
        const page = await this.#deps.sessionLog.read(feed.sessionId, everything, from, limits.streamPageEvents);
        if (page === null) {
          this.#lose(feed);
          return;
        }
        this.#emit(feed, page.events, page.next);
        // Nothing to be had, and nobody has spoken of more meanwhile: there is less than was said.
        if (page.next <= from && feed.expected === expected) feed.expected = feed.head;
      }
    } catch (error) {
      this.#deps.log.warn({ err: error, session_id: feed.sessionId }, 'missed events could not be read yet');
    } finally {
      feed.isFetching = false;
    }
  }

  /** Events that were told already are left out; a notice may have come while they were being fetched. */
  #emit(feed: Feed, events: readonly LoggedEvent[], head: number): void {
    const from = feed.head ?? 0;
    if (head <= from) return;
    feed.head = head;
    const fresh = events.filter(({ offset }) => offset >= from);
    if (fresh.length === head - from) feed.newest.add(fresh);
    else feed.newest.clear();
    for (const listener of [...feed.listeners]) listener.onEvents(fresh, head);
  }

  /** A partition has a new owner, and what the old one did not get to say is lost. */
  #onOwnerChange(subject: string): void {
    const partition = Number(subject.slice(subject.lastIndexOf('.') + 1));
    this.#compare(this.#feeds.values().filter((feed) => feed.partition === partition));
  }

  /** Partitions change hands in numbers, so what is asked for in one turn of the event loop goes into one query. */
  #compare(feeds: Iterable<Feed>): void {
    for (const feed of feeds) this.#doubted.add(feed);
    if (this.#isComparing || this.#doubted.size === 0) return;
    this.#isComparing = true;
    setImmediate(() => void this.#compareDoubted());
  }

  async #compareDoubted(): Promise<void> {
    try {
      while (this.#doubted.size > 0) {
        const some = [...this.#doubted].slice(0, limits.sessionsPerCheck);
        for (const feed of some) this.#doubted.delete(feed);
        await this.#compareSome(some);
      }
    } finally {
      this.#isComparing = false;
    }
  }

  async #compareSome(feeds: readonly Feed[]): Promise<void> {
    // One whose first read is under way learns from that what there is, and whether there is such a session.
    const before = new Map(feeds.map((feed) => [feed, feed.head]));
    try {
      const heads = await this.#deps.sessionLog.heads(feeds.map(({ sessionId }) => sessionId));
      for (const feed of feeds) {
        const head = heads.get(feed.sessionId);
        const known = before.get(feed) ?? null;
        if (head === undefined && known !== null) this.#lose(feed);
        if (head !== undefined && known !== null) this.#noteHead(feed, head, known);
      }
    } catch (error) {
      this.#deps.log.warn({ err: error, sessions: feeds.length }, 'the heads of open sessions could not be read yet');
    }
  }
}
