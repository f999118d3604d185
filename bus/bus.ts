import type { workKinds } from '#shared/work-kinds.ts';

/**
 * The message bus between processes; all drivers pass one conformance suite (conformance.ts). Commands, work and usage are durable once their promise resolves.
 * Notices and tokens may be lost at any moment; their readers must recover. Bodies of commands and work are well-formed text of at most 32 MiB; over 512 KiB
 * they travel as blobs, transparently, unless they are dispatched.
 *
 * Promises reject, and `read`, `consume` and `subscribe` throw: `bus.closed` after `close`, `bus.full` past a limit, `bus.body_too_large`, and errors of the
 * store or broker. After those the outcome is unknown; a retry with the same message id is safe.
 */
export interface Bus {
  readonly commands: CommandLog;
  readonly work: WorkQueue;
  readonly notices: NoticeBoard;
  readonly tokens: TokenStream;
  readonly blobs: BlobStore;
  readonly usage: UsageLog;
  /** False while the broker can't be reached. */
  isReady(): boolean;
  /**
   * The number of the current connection, but for that of tokens; null while there is none. Another number: notices may be lost since the last look. Always the
   * same one of an embedded bus.
   */
  connectionNumber(): number | null;
  /** Sends what this tick has published so far now, not at the end of the tick. Costs a write: for the start of what a client waits for. */
  flush(): void;
  /**
   * False from four fifths of the limits of the command log, the work queue or the usage log. Checked before admitting new work, so that results of admitted
   * work always fit.
   * @param kind the kind of item that the work becomes: false also while such items would wait more than a few seconds (shared/admission.ts)
   */
  hasCapacity(kind?: WorkKind): boolean;
  /** The broker was away and is back: notices, replies and tokens may be lost. Handlers must not throw. Never called by an embedded bus. */
  onReconnect(handler: () => void): Subscription;
  /**
   * Stops readers, waits for running handlers, then closes. Until then handlers may append, publish and settle; afterwards notices and tokens are silently
   * dropped, everything else is refused.
   */
  close(): Promise<void>;
}

export interface Subscription {
  /** Takes nothing new; resolves once the running handler has returned. A handler that awaits it deadlocks. */
  stop(): Promise<void>;
}

export interface Listening extends Subscription {
  /**
   * Resolves once messages published from then on arrive, from any process: await it before reading a store, to leave no gap. Never rejects; see
   * `onReconnect`.
   */
  ready(): Promise<void>;
}

/** One log for all partitions. A sequence is a position in the whole log and is never reused. */
export interface CommandLog {
  /**
   * A message id seen within the last 120 s is a duplicate and stores nothing.
   * @returns the sequence of the command, or of the stored one that it duplicates
   */
  append(partition: number, messageId: string, body: string): Promise<{ sequence: number; duplicate: boolean }>;
  /**
   * Reads a partition in order from after a position (sequence 0: from the start), then follows it. The handler gets 1 to `maxBatch` commands; the next batch
   * waits for its promise. There are no acks: the reader keeps its cursor. A rejected batch is redelivered after a back-off, whole or without what was
   * already processed, until accepted. A command that has lost its large body arrives with LOST_BODY (large-bodies.ts).
   *
   * At the start and after each reconnect the command at the position is compared with its fingerprint. Another command, or none, means that the log was lost
   * or rolled back: `onRestart` is called, and reading starts at the log's first command; commands may then repeat under lower sequences. A purged position
   * (the owner has advanced its cursor) is no restart as long as the newest command that this bus has seen is still in the log.
   */
  read(partition: number, after: LogPosition, handler: (commands: StoredCommand[]) => Promise<void>, options?: ReadOptions): Subscription;
  /** Of any partition; null when it was purged or does not exist yet. */
  at(sequence: number): Promise<StoredCommand | null>;
  /** The partition's newest sequence in the log, 0 for none. */
  lastOf(partition: number): Promise<number>;
  /** `created` identifies this log: another value means that it was lost and created anew, and all cursors are invalid. */
  state(): Promise<{ created: string; firstSequence: number; lastSequence: number }>;
  /**
   * Drops everything below the sequence, in all partitions. 1 or less drops nothing; past the end, all.
   * @param standing purge only if this command is in the log, checked on the same connection: a log that was lost or rolled back in between is not purged
   * @throws `service.unreachable` when the check fails; not retried
   */
  purge(belowSequence: number, standing?: LogPosition): Promise<void>;
}

/** A reader's last processed command. Purges keep it while it is the lowest of all cursors. */
export interface LogPosition {
  sequence: number;
  /** See position-fingerprint.ts. Null: only whether the log reaches the sequence is checked. */
  fingerprint: string | null;
}

export interface ReadOptions {
  maxBatch?: number;
  /** The given position is not of this log. Called before the handler gets a command of the new log. */
  onRestart?: () => void;
}

export interface StoredCommand {
  sequence: number;
  messageId: string;
  body: string;
  /** By the log's own clock. */
  storedAtMs: number;
}

export type WorkKind = (typeof workKinds)[number];
/** Their publishers keep the items and learn of their progress, so they can be dispatched. */
export type DispatchedKind = Extract<WorkKind, 'router.call' | 'router.turn'>;

/**
 * At least once: items are redelivered after the death of a worker, a lost lease or a nak, so handlers must be idempotent. Dispatched items are delivered at
 * most once, except after a nak.
 */
export interface WorkQueue {
  /**
   * A message id seen within the last 120 s is a duplicate and stores nothing.
   * @param earlierDeliveries dispatches before it was stored; its first delivery gets the next number
   */
  publish(kind: WorkKind, messageId: string, body: string, earlierDeliveries?: number): Promise<{ duplicate: boolean }>;
  /**
   * Sends an item to a consumer with a free slot, unstored and unacknowledged: at most once. Its publisher keeps it, and without a sign of progress publishes
   * it under the same message id. A consumer without a free slot stores the item on the publisher's behalf.
   * @param messageId one token of a subject
   * @param body UTF-8, at most `maxDispatchBytes()`. Not to be changed any more
   */
  dispatch(kind: DispatchedKind, messageId: string, body: Uint8Array): void;
  /** What a dispatch may carry at present: a broker says with each connection how large its messages may be. */
  maxDispatchBytes(): number;
  /** The handler gets the message id of each item dispatched here that is known to have reached no consumer: no subscriber, or no broker. */
  onRefused(handler: (messageId: string) => void): Subscription;
  /** The handler gets the message id of each item dispatched here that a consumer has stored. The report may be lost. */
  onStored(handler: (messageId: string) => void): Subscription;
  /** What was dispatched before has ended with the process that dispatched it; epoch milliseconds by its clock. 0 where dispatches outlive their sender. */
  readonly earliestDispatchAtMs: number;
  /** At most `concurrency` handlers run at once. An item left unsettled by its handler is redelivered when its lease expires. */
  consume(kind: WorkKind, options: ConsumeOptions, handler: (item: WorkItem) => Promise<void>): Subscription;
  /** When the queue was created, epoch milliseconds by its own clock: earlier items were lost with the previous one. 0 when it can't be lost alone. */
  createdAtMs(): Promise<number>;
  /** The queue was lost, with all its items, and created anew; reported within seconds. Handlers must not throw. */
  onRestart(handler: () => void): Subscription;
  /** Stored and unsettled items per kind, those in flight included; for monitoring. */
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
  /** The body of a long dispatch in UTF-8; `body` is decoded when it is read. Absent or null: there is only `body`. */
  readonly bytes?: Uint8Array | null;
  /** From 1. Above 1 it is a redelivery, and an earlier delivery may have had effects. */
  deliveryCount: number;
  /** Numbers the delivery in ids of frames: two that the broker has counted alike differ (messages/attempt-number.ts). Absent: `deliveryCount`, which is exact. */
  readonly attempt?: number;
  publishedAtMs: number;
  /** Removes the item, even after its lease was lost. Only the first of ack, nak and term counts. */
  ack(): Promise<void>;
  /** Redelivers after the delay. Does nothing when the lease is lost. */
  nak(delayMs: number): Promise<void>;
  /** Drops the item. The reason is logged. */
  term(reason: string): Promise<void>;
  /** Restarts the lease. @throws `bus.lease_lost` */
  working(): Promise<void>;
  /** When the lease ends by what is known now, by `performance.now()`. Absent: it is counted from `working`. */
  leaseEndsAt?(): number;
}

/** Publish and subscribe without storage: notices (`evt.*`), take-overs (`part.*`), replies (`ans.*`), control (`ctl.*`). */
export interface NoticeBoard {
  publish(subject: string, body: string): void;
  /** `*` stands for one token. Handlers run asynchronously, in publish order per subject, and must not throw. */
  subscribe(pattern: string, handler: (subject: string, body: string) => void): Listening;
}

/** Frames of model calls: live to subscribers, and stored for two minutes for replay. */
export interface TokenStream {
  /**
   * Fire and forget; live at once. The frame's kind says when it is stored and whether it waits for the end of the tick (messages/retention.ts). Takes ownership
   * of the bytes.
   */
  publish(subject: string, frame: Uint8Array): void;
  /** Frames are shared between subscribers: read only. */
  subscribe(pattern: string, handler: (subject: string, frame: Uint8Array) => void): Listening;
  /**
   * The subject's stored frames, in order; empty for none or expired ones.
   * @param upTo `now` first waits until everything published before is stored
   */
  replay(subject: string, upTo?: 'kept' | 'now'): Promise<Uint8Array[]>;
}

/** Large bodies in transit, stored for 24 hours; null for an unknown or expired blob. */
export interface BlobStore {
  put(bytes: Uint8Array): Promise<string>;
  get(id: string): Promise<Uint8Array | null>;
}

/** What calls have used, until it is in the ledger. Without a maximum age: a record stays until a handler has accepted it. */
export interface UsageConsumeOptions {
  /** Records. */
  maxBatch: number;
  /**
   * Once all that was there is accepted, the next records are looked for so long after these were: they collect in the log meanwhile, in no process and for any
   * consumer. Absent: at once.
   */
  everyMs?: number;
}

export interface UsageLog {
  /**
   * Resolves once the record is stored. A record whose message id was seen within the last 120 s may be stored again or not: handlers must bear both. The first
   * try is sent at the end of the tick at the latest, with the other records of the tick, on the connection of token frames: while the bus is ready, a record
   * leaves this process before a frame that is published to `tokens` after it, without an await between the two. While the broker is away the record is kept in memory and sent again until it is stored or the bus closes.
   *
   * Rejects only with `bus.full`, `bus.closed`, `bus.body_too_large` and refusals that last, such as a missing permission: then the record is not kept here.
   * @param body at most 128 KiB
   */
  append(messageId: string, body: string): Promise<void>;
  /**
   * The handler gets 1 to `maxBatch` records, in no promised order; the next batch waits for its promise. At least once: all records of a batch are removed when
   * it resolves; when it rejects they are delivered again after a back-off, here or to another consumer. A record is delivered again, too, when its consumer
   * dies, is paused, or loses the broker.
   */
  consume(handler: (records: UsageMessage[]) => Promise<void>, options: UsageConsumeOptions): Subscription;
  /** What no handler has accepted yet, those in flight included. */
  backlog(): Promise<UsageBacklog>;
}

export interface UsageMessage {
  messageId: string;
  body: string;
}

export interface UsageBacklog {
  /** Or messages of several records, in a driver that stores those of a tick together. */
  records: number;
  /** When the oldest of them was stored, by the log's own clock; null for none. */
  oldestAtMs: number | null;
}
