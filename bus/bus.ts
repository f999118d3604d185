/**
 * The message bus between processes: command log, work queue, notices, token stream, blobs. Commands and work are durable once their promise resolves.
 * Notices and tokens may be lost at any moment; their readers must recover. All drivers pass one conformance suite (conformance.ts).
 *
 * Bodies of commands and work are well-formed text of at most 32 MiB. Over 512 KiB they travel as blobs, transparently for both ends.
 *
 * @throws `bus.closed` after `close`, `bus.full` past a storage or buffer limit, `bus.body_too_large`, and errors of the store or broker. The outcome is
 * unknown after those; retrying with the same message id is safe. Promises reject with the same; `read`, `consume` and `subscribe` throw.
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
   * Sends what this process has published so far in this tick at once, as a batch of its own, and not at the end of the tick. Costs a write: for the start of
   * something that a client waits for.
   */
  flush(): void;
  /**
   * False from four fifths of the limits of the command log or the work queue. Checked before new work is admitted from outside, so that results of admitted
   * work always fit.
   * @param kind the kind of item that the new work becomes: false also while items of it would wait longer than a few seconds (shared/admission.ts)
   */
  hasCapacity(kind?: WorkKind): boolean;
  /** The broker is reachable again: notices, replies and tokens may have been lost meanwhile. Handlers must not throw. An embedded bus never calls them. */
  onReconnect(handler: () => void): Subscription;
  /**
   * Stops readers, waits for running handlers, then closes. Running handlers may still append, publish and settle. Afterwards notices and tokens are silently
   * dropped and everything else is refused.
   */
  close(): Promise<void>;
}

export interface Subscription {
  /** Takes nothing new and resolves once the running handler has returned. A handler that awaits it therefore deadlocks. */
  stop(): Promise<void>;
}

/** A subscription to messages that are not stored. */
export interface Listening extends Subscription {
  /**
   * Resolves once the subscription is active at the broker: messages published from then on arrive, from any process. To subscribe and then read a store
   * without a gap, await it in between. Never rejects; loss of the broker is reported by `onReconnect`.
   */
  ready(): Promise<void>;
}

/** One log for the commands of all partitions. A sequence is a position in the whole log and is never reused. */
export interface CommandLog {
  /**
   * Stores a command. A message id seen within the last 120 s is a duplicate and stores nothing.
   * @returns the sequence of the command, or of the stored one that it duplicates
   */
  append(partition: number, messageId: string, body: string): Promise<{ sequence: number; duplicate: boolean }>;
  /**
   * Reads a partition in order from after a log position (sequence 0: from the start), then follows it. The handler gets a batch of 1 to `maxBatch` commands;
   * the next batch waits for its promise. There are no acks: the reader keeps its own cursor. A rejected batch is redelivered after a back-off, whole or
   * without what was already processed, until it is accepted. A command whose large body is lost arrives with LOST_BODY (large-bodies.ts).
   *
   * At the start and after each reconnect the command at the position is compared with its fingerprint. A different command, or none, means that the log was
   * lost or rolled back: `onRestart` is called and reading continues from the log's first command. Commands read before may then come again under lower
   * sequences. A position that was merely purged, since the partition's owner has advanced its cursor, is no restart as long as the newest command that this
   * bus has seen is still in the log.
   */
  read(partition: number, after: LogPosition, handler: (commands: StoredCommand[]) => Promise<void>, options?: ReadOptions): Subscription;
  /** The command at a sequence, of any partition; null when it was purged or does not exist yet. */
  at(sequence: number): Promise<StoredCommand | null>;
  /** The sequence of the partition's newest command in the log, 0 when there is none. */
  lastOf(partition: number): Promise<number>;
  /** `created` identifies this log: another value means that the log was lost and created anew, which invalidates all cursors. */
  state(): Promise<{ created: string; firstSequence: number; lastSequence: number }>;
  /**
   * Drops everything below the sequence, over all partitions. A sequence of 1 or less drops nothing; one past the end drops all.
   * @param standing drops only if the command of this position is in the log. Check and purge use one connection, so that a log that was lost or rolled back
   * in between, with other commands under those sequences, is not purged
   * @throws `service.unreachable` when the check can't be made; it is not retried
   */
  purge(belowSequence: number, standing?: LogPosition): Promise<void>;
}

/** The last command that a reader has processed. Purges keep it while it is the lowest of all cursors. */
export interface LogPosition {
  sequence: number;
  /**
   * Fingerprint of the command (position-fingerprint.ts): tells its log from one that was created anew. Null: only whether the log reaches that sequence is
   * checked.
   */
  fingerprint: string | null;
}

export interface ReadOptions {
  maxBatch?: number;
  /** The log is not the one of the given position. Called before the handler gets the first command of the new log. */
  onRestart?: () => void;
}

export interface StoredCommand {
  sequence: number;
  messageId: string;
  body: string;
  /** By the log's own clock. */
  storedAtMs: number;
}

/** Each kind has its own subject and consumers. */
export type WorkKind = 'router.turn' | 'router.call' | 'tool' | 'delivery';
/** The kinds whose publishers keep their items and learn of their progress, so that they can be dispatched. */
export type DispatchedKind = Extract<WorkKind, 'router.call'>;

/**
 * At least once: an item is redelivered after its worker died, lost its lease or sent a nak, so handlers must be idempotent. Dispatched items are delivered
 * at most once, except after a nak.
 */
export interface WorkQueue {
  /**
   * Stores an item. A message id seen within the last 120 s is a duplicate and stores nothing.
   * @param earlierDeliveries how often it was delivered before it was stored; its first delivery gets the next number
   */
  publish(kind: WorkKind, messageId: string, body: string, earlierDeliveries?: number): Promise<{ duplicate: boolean }>;
  /**
   * Sends an item to a consumer with a free slot without storing it: at most once, unacknowledged, lost with its consumer or a broker. For publishers that
   * keep the item until they learn of its progress, and otherwise publish it under the same message id. A consumer without a free slot stores the item on the
   * publisher's behalf.
   * @param messageId one token of a subject
   * @param body at most 512 KiB
   */
  dispatch(kind: DispatchedKind, messageId: string, body: string): void;
  /** Reports the message id of each item dispatched here that is known to have reached no consumer: its kind has no subscriber, or the broker is away. */
  onRefused(handler: (messageId: string) => void): Subscription;
  /**
   * Runs the handler for at most `concurrency` items at once. An item that a handler leaves unsettled, by returning or throwing, is redelivered when its
   * lease expires.
   */
  consume(kind: WorkKind, options: ConsumeOptions, handler: (item: WorkItem) => Promise<void>): Subscription;
  /**
   * When the queue was created, epoch milliseconds by its own clock: items stored earlier were lost with the previous queue. 0 for a queue that can't be lost
   * without the rest of the database.
   */
  begunAtMs(): Promise<number>;
  /** The queue was lost and created anew, reported within seconds: everything stored in it is gone. Handlers must not throw. */
  onRestart(handler: () => void): Subscription;
  /** Items of each kind that are stored and not settled, those in flight included. For monitoring. */
  depths(): Promise<Record<WorkKind, number>>;
}

export interface ConsumeOptions {
  concurrency: number;
  /** How long a lease lasts without `working`. */
  ackWaitMs: number;
}

export interface WorkItem {
  messageId: string;
  body: string;
  /** From 1; higher means a redelivery, whose earlier delivery may have had effects. */
  deliveryCount: number;
  publishedAtMs: number;
  /** Done: removes the item, even after its lease was lost. Of ack, nak and term only the first call counts. */
  ack(): Promise<void>;
  /** Redeliver after the delay. Does nothing when the lease is lost. */
  nak(delayMs: number): Promise<void>;
  /** Drop without redelivery. The reason is logged. */
  term(reason: string): Promise<void>;
  /** Extends the lease by its full length from now. @throws `bus.lease_lost` */
  working(): Promise<void>;
}

/** Publish and subscribe without storage: notices (`evt.*`), take-overs (`part.*`), replies (`ans.*`), control (`ctl.*`). */
export interface NoticeBoard {
  publish(subject: string, body: string): void;
  /** `*` in the pattern stands for one token. Handlers run after the publisher's tick, in publish order per subject, and must not throw. */
  subscribe(pattern: string, handler: (subject: string, body: string) => void): Listening;
}

/**
 * When a frame is stored for replay. `soon` costs a broker a fraction: within `RETAINED_WITHIN_MS` normally, later while the publisher is stalled or its
 * broker is away, never when the publisher dies first. `no more`: neither this frame nor pending ones of its subject need to be stored, since there will be
 * no replay.
 */
export type Retention = 'at once' | 'soon' | 'no more';
export const RETAINED_WITHIN_MS = 1_000;

/** Frames of model calls: delivered live to subscribers, and stored for two minutes for replay. */
export interface TokenStream {
  /** Fire and forget; delivered live at once, whatever its retention. The bus takes ownership of the bytes: do not write into them again. */
  publish(subject: string, frame: Uint8Array, retention?: Retention): void;
  /** Frames are shared between subscribers: read only. */
  subscribe(pattern: string, handler: (subject: string, frame: Uint8Array) => void): Listening;
  /**
   * All stored frames of one subject, in order; empty when there are none or they have expired.
   * @param upTo `now` first waits until everything published before is stored
   */
  replay(subject: string, upTo?: 'kept' | 'now'): Promise<Uint8Array[]>;
}

/** Large bodies in transit, stored for 24 hours. `get` returns null for an unknown or expired blob. */
export interface BlobStore {
  put(bytes: Uint8Array): Promise<string>;
  get(id: string): Promise<Uint8Array | null>;
}
