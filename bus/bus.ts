/**
 * What travels between processes. Commands and work are durable once their promise resolves; notices, answers, control and
 * tokens may be lost at any moment and everything that reads them heals. Two drivers, one conformance suite (conformance.ts).
 *
 * Bodies of commands and work are well-formed text of any size up to 32 MiB: over 512 KiB they travel as blobs, unseen by both ends.
 *
 * Promises reject, and `read`, `consume` and `subscribe` throw: `bus.closed` after `close`, `bus.full` when what is stored or waits
 * to be stored has reached its limit, `bus.body_too_large`, and whatever the store or the broker threw (the outcome is unknown
 * then: the same call with the same message id is safe).
 */
export interface Bus {
  readonly commands: CommandLog;
  readonly work: WorkQueue;
  readonly notices: NoticeBoard;
  readonly tokens: TokenStream;
  readonly blobs: BlobStore;
  /** False while the broker can't be reached. */
  isReady(): boolean;
  /**
   * What this process has said so far in this turn of its event loop leaves at once, and not with all else that it says in it. For what
   * somebody waits for to begin: what goes by itself costs a write.
   */
  flush(): void;
  /**
   * False once the command log or the work queue is four fifths full. Whoever lets new work in from outside asks first and refuses
   * it then, so that there is always room for the results of what was let in.
   * @param kind what is let in becomes an item of this kind, and is counted as one: false also while those that wait now are more than are
   *   taken up in a few seconds (shared/admission.ts)
   */
  hasCapacity(kind?: WorkKind): boolean;
  /**
   * The broker was away and is back: notices, answers and tokens may have been lost meanwhile. Handlers must not throw. An embedded
   * bus is never away.
   */
  onReconnect(handler: () => void): Subscription;
  /**
   * Stops reading, waits for handlers in hand, then closes. Until the last of them has returned they may still append, publish
   * and settle; afterwards notices and tokens are silently lost, and everything else is refused.
   */
  close(): Promise<void>;
}

export interface Subscription {
  /** Takes nothing new and resolves once the handler in hand, if any, has returned: a handler that awaited its own end would wait for ever. */
  stop(): Promise<void>;
}

/** A subscription to what has no memory. */
export interface Listening extends Subscription {
  /**
   * Resolves once whatever is published from then on arrives, by whichever process: who subscribes and then reads a store waits for it
   * in between. Never rejects; a broker that is away says so by `onReconnect`.
   */
  ready(): Promise<void>;
}

/** One log of commands for all partitions; a sequence is a position in the whole log and is never used twice. */
export interface CommandLog {
  /**
   * Stores a command. A message id seen within the last 120 s is a duplicate and stores nothing.
   * @returns the sequence of the command, or of the one it repeats
   */
  append(partition: number, messageId: string, body: string): Promise<{ sequence: number; duplicate: boolean }>;
  /**
   * Reads a partition in order from behind a place (sequence 0: from the start), then follows it. The handler gets all that is at
   * hand, at least one and at most `maxBatch`; the next call waits for its promise. There are no acks: the reader keeps its cursor.
   * What a handler throws back is handed again after a pause, whole or without what it had taken before, until it is taken.
   * A command whose body was large and is lost arrives as LOST_BODY (large-bodies.ts).
   *
   * Whenever the place is (re)found, at the start and after each reconnect, the command that stands there is looked at. Another one, or
   * none, means that the log was lost or rolled back and has grown anew: `onRestart` is called, and reading goes on from the log's
   * first command. What had been taken before may come again then, under lower sequences. A place that was merely purged, because the
   * owner of the partition has moved its cursor on, is no such case as long as the newest command that this bus has seen still stands.
   */
  read(partition: number, after: LogPosition, handler: (commands: StoredCommand[]) => Promise<void>, options?: ReadOptions): Subscription;
  /** The command at a sequence of the log, of whatever partition, or null when it was purged or has yet to come. */
  at(sequence: number): Promise<StoredCommand | null>;
  /** The sequence of the partition's newest command that the log still holds, 0 when it holds none. */
  lastOf(partition: number): Promise<number>;
  /** `created` names this log: another value means that it was lost and begun anew, so old cursors mean nothing. */
  state(): Promise<{ created: string; firstSequence: number; lastSequence: number }>;
  /**
   * Drops everything below the sequence, over all partitions. A sequence of 1 or less drops nothing; one past the end drops all.
   * @param standing drops only if the command of this place stands there. Both are done on one connection: a log that was lost or rolled
   *   back in between, and holds other commands under those sequences, is left alone
   * @throws `service.unreachable` when that can't be said; it is not tried again
   */
  purge(belowSequence: number, standing?: LogPosition): Promise<void>;
}

/** The last command that a reader has taken. Purges keep it for as long as it is the lowest of all cursors. */
export interface LogPosition {
  sequence: number;
  /** The mark of its command (position-fingerprint.ts): tells the log that the sequence is of from one that has grown anew. Null: only looked at is whether the log reaches so far. */
  fingerprint: string | null;
}

export interface ReadOptions {
  maxBatch?: number;
  /** The log is not the one that the place was of. Called before the handler gets its first command of the new one. */
  onRestart?: () => void;
}

export interface StoredCommand {
  sequence: number;
  messageId: string;
  body: string;
  /** When the log took it, by the log's own clock. */
  storedAtMs: number;
}

/** The kinds of work, each with its own subject and consumers. */
export type WorkKind = 'router.turn' | 'router.call' | 'tool' | 'delivery';
/** The kinds whose publishers keep their items and hear of what is done with them, so that they can be offered. */
export type DispatchedKind = Extract<WorkKind, 'router.call'>;

/**
 * At least once: an item is given again when its worker died, let its lease lapse or sent it back. Handlers must bear a second delivery.
 * What was offered comes at most once, unless its worker sent it back.
 */
export interface WorkQueue {
  /**
   * Stores an item. A message id seen within the last 120 s is a duplicate and stores nothing.
   * @param earlierDeliveries how often it was handed to somebody before it was stored: its first delivery is the next
   */
  publish(kind: WorkKind, messageId: string, body: string, earlierDeliveries?: number): Promise<{ duplicate: boolean }>;
  /**
   * Hands an item to a consumer with a free slot, and stores it nowhere: at most once, and without a word about it. A consumer that dies
   * takes it along, and so does a broker. For work that its publisher keeps until it hears of it: hearing nothing, it publishes the item
   * under the same message id. A consumer whose slots are full stores the item in the publisher's stead.
   * @param messageId one token of a subject
   * @param body at most 512 KiB
   */
  dispatch(kind: DispatchedKind, messageId: string, body: string): void;
  /** The handler gets the message id of each item that was offered here and came to nobody, as far as that is known: nobody consumes its kind, or the broker is away. */
  onRefused(handler: (messageId: string) => void): Subscription;
  /**
   * Hands items to the handler, at most `concurrency` at once. A handler that returns or throws without having settled its
   * item leaves it to be delivered again when the lease lapses.
   */
  consume(kind: WorkKind, options: ConsumeOptions, handler: (item: WorkItem) => Promise<void>): Subscription;
  /**
   * When the queue was begun, epoch milliseconds by its own clock: an item that was stored before was lost with the queue before it. 0 for one
   * that is lost with everything else alone.
   */
  begunAtMs(): Promise<number>;
  /** The queue was lost and has begun anew, within seconds: whatever was stored in it is gone. Handlers must not throw. */
  onRestart(handler: () => void): Subscription;
  /** How many items of each kind are stored and not yet settled, those in hand included. One question, for those who watch. */
  depths(): Promise<Record<WorkKind, number>>;
}

export interface ConsumeOptions {
  concurrency: number;
  /** How long an item stays with a worker that says nothing. */
  ackWaitMs: number;
}

export interface WorkItem {
  messageId: string;
  body: string;
  /** 1 at the first delivery. Anything higher marks a redelivery: look before acting. */
  deliveryCount: number;
  publishedAtMs: number;
  /** Done: the item is gone for good, even when its lease was lost. Of ack, nak and term only the first call counts. */
  ack(): Promise<void>;
  /** Not now: deliver it again after the delay. Does nothing when the lease is lost. */
  nak(delayMs: number): Promise<void>;
  /** Never: drop it. The reason goes to the log. */
  term(reason: string): Promise<void>;
  /** Still at it: starts the lease anew. @throws `bus.lease_lost` */
  working(): Promise<void>;
}

/** Plain publish and subscribe, without memory: notices (`evt.*`), owners (`part.*`), answers (`ans.*`), control (`ctl.*`). */
export interface NoticeBoard {
  publish(subject: string, body: string): void;
  /** `*` in the pattern stands for one token. Handlers run after the publisher's turn, in publish order per subject, and must not throw. */
  subscribe(pattern: string, handler: (subject: string, body: string) => void): Listening;
}

/**
 * When a frame is kept. `soon` costs a broker a fraction: within `RETAINED_WITHIN_MS` while nothing is amiss; later when the publisher stands
 * still or its broker is away, and never when it dies before. `no more` need not be kept, nor what is to be kept soon of its subject: nobody
 * will look back.
 */
export type Retention = 'at once' | 'soon' | 'no more';
export const RETAINED_WITHIN_MS = 1_000;

/** Frames of model calls: live to whoever listens, and kept for two minutes so that a reader can look back. */
export interface TokenStream {
  /** Fire and forget, live at once however it is kept. The bytes belong to the bus afterwards: do not write into them again. */
  publish(subject: string, frame: Uint8Array, retention?: Retention): void;
  /** Frames are shared between readers: read only. */
  subscribe(pattern: string, handler: (subject: string, frame: Uint8Array) => void): Listening;
  /**
   * All frames kept of one subject, in order. Empty when there are none, or none any more.
   * @param upTo `now` waits for as long as it takes to keep what was published before, where that is not done at once
   */
  replay(subject: string, upTo?: 'kept' | 'now'): Promise<Uint8Array[]>;
}

/** Large bodies in transit, kept for 24 hours. */
export interface BlobStore {
  put(bytes: Uint8Array): Promise<string>;
  get(id: string): Promise<Uint8Array | null>;
}
