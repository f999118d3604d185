import type { Bus, Listening } from '#bus/bus.ts';
import { addresses, patternOf, subjectOf } from '#bus/subjects.ts';
import { ObjectMap } from '#shared/object-map.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { within } from '#shared/within.ts';
import type { EventFeeds, FeedReader } from '../feed/event-feeds.ts';
import type { LoggedEvent } from '../feed/session-log.ts';
import type { Waits } from '../limits.ts';
import { SessionReplies } from './session-replies.ts';

export interface DeltaReader {
  /**
   * Resolves once the broker has the subscription, within `subscribedMs`. Await it before the client learns that it is connected, or it may miss the reply to
   * its next post; the message itself is in the log.
   */
  ready(): Promise<void>;
  observe(event: LoggedEvent): void;
  /** Sends a snapshot of each reply in generation, then all deltas. */
  start(emit: (sse: string) => void): void;
  release(): void;
}

interface FollowedSession {
  readonly replies: SessionReplies;
  readonly readers: Set<(sse: string) => void>;
  readonly feed: FeedReader;
  readonly tokens: Listening;
  buffered: number;
}

interface DeltasDeps {
  bus: Bus;
  feeds: EventFeeds;
  waits: Pick<Waits, 'subscribedMs'>;
  log: Log;
}

/** The token subscriptions: one for each session with SSE readers. */
export class Deltas {
  readonly #deps: DeltasDeps;
  readonly #followed = new ObjectMap<FollowedSession>();

  constructor(deps: DeltasDeps) {
    this.#deps = deps;
  }

  read(sessionId: string): DeltaReader {
    const followed = this.#followed.get(sessionId) ?? this.#follow(sessionId);
    followed.buffered += 1;
    let own: ((sse: string) => void) | null = null;
    return {
      ready: async () => {
        await within(this.#deps.waits.subscribedMs, followed.tokens.ready(), () => {});
      },
      observe: (event) => followed.replies.observe(event, false),
      start: (emit) => {
        own = (sse) => emit(sse);
        followed.readers.add(own);
        for (const snapshot of followed.replies.snapshots()) emit(snapshot);
      },
      release: () => {
        if (own !== null) followed.readers.delete(own);
        followed.buffered -= 1;
        if (followed.buffered === 0) this.#leave(sessionId, followed);
      },
    };
  }

  #follow(sessionId: string): FollowedSession {
    const { bus, feeds } = this.#deps;
    const readers = new Set<(sse: string) => void>();
    const replies = new SessionReplies({
      emit: (sse) => {
        for (const emit of [...readers]) emit(sse);
      },
      replay: (callId, upTo) => bus.tokens.replay(subjectOf(addresses.tokens, sessionId, callId), upTo),
    });
    const feed = feeds.read(sessionId);
    // Registered before any reader: a cancelled reply is closed before readers get the status.
    feed.subscribe({
      onEvents: (events) => {
        for (const event of events) replies.observe(event, true);
      },
      onDeleted: () => {},
    });
    const tokens = this.#subscribe(sessionId, replies, feed);
    const followed: FollowedSession = { replies, readers, feed, tokens, buffered: 0 };
    this.#followed.set(sessionId, followed);
    return followed;
  }

  #subscribe(sessionId: string, replies: SessionReplies, feed: FeedReader): Listening {
    try {
      return this.#deps.bus.tokens.subscribe(patternOf(addresses.tokens, sessionId), (subject, bytes) =>
        replies.onFrame(subject.slice(subject.lastIndexOf('.') + 1), bytes),
      );
    } catch (error) {
      feed.release();
      throw error;
    }
  }

  #leave(sessionId: string, { replies, feed, tokens }: FollowedSession): void {
    this.#followed.delete(sessionId);
    replies.close();
    feed.release();
    tokens.stop().catch((error) => this.#deps.log.warn({ err: error, session_id: sessionId }, 'a subscription could not be ended'));
  }
}
