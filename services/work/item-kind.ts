import type { WorkKind } from '#bus/bus.ts';
import type { CallJson } from '#bus/messages/deferred-call.ts';
import type { CommandOf, ResultType } from '#bus/messages/session.ts';
import type { LeaseTimes } from '#bus/renew-lease.ts';
import type { Failure } from '#shared/errors/switchyard-error.ts';
import type { DeferredMessages } from '#shared/prompts/deferred-messages.ts';
import type { ItemTrace } from './item-span.ts';
import type { EndReasons, RunningItem } from './running-items.ts';

/** Why an item is settled without being executed. */
export type Refusal =
  | { why: 'cancelled' }
  | { why: 'deadline' }
  /** The bodies in flight exceed the kind's budget, at each delivery so far. */
  | { why: 'overloaded' }
  /** After the last delivery. `reason` is for the operator. */
  | { why: 'given-up'; reason: string };

/** `again`: the outcome could not be published, so the item is redelivered. Null: there is nothing to report. */
export type Outcome<Result> = Result | null | 'again';

type HeaderField = 'v' | 'sessionId' | 'commandId' | 'sentAtMs' | 'answerTo' | 'traceparent' | 'callId';

/** A result command without its header. */
export type ResultCommand = { [Type in ResultType]: Omit<CommandOf<Type>, HeaderField> }[ResultType];

/** Why a message is no item of its kind. */
export class InvalidItem {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

export interface ItemHeader {
  /** The effect's id, or a client's call's. The id of the result's command. */
  id: string;
  /** Its owner gets the result, and its effect has a row. Null: a client's call. */
  sessionId: string | null;
  /** May have been published before, as after a take-over. */
  republished: boolean;
  traceparent: string | null;
}

/** How a worker executes the items of one kind: a row of its table. Everything else about an item is the same for all kinds. */
export interface ItemKind<Work, Result> {
  readonly name: WorkKind;
  /** In flight at this worker. */
  readonly concurrency: number;
  readonly lease: LeaseTimes;
  /** Budget of the bodies in flight; null: bodies are small. With a budget an item's text is dropped once it is parsed. */
  readonly bodyBytes: number | null;
  /** The newest version that `parse` reads; newer items are left to newer workers. */
  readonly newestVersion: number;
  /** Whether items without an effect's row are dropped when they may be done already. */
  readonly needsEffectRow: boolean;
  /** Of items that are given up. Null: none is stored here. */
  readonly deadLetters: 'tool' | 'call' | null;
  /** Whether its `execute` writes a log line of its own for each ended item. */
  readonly writesOwnLine: boolean;
  /** Whether a cancelled item, too, stores something as it ends: it is redelivered when that fails. Of others nothing is left to do. */
  readonly storesCancelled: boolean;
  readonly endReasons: EndReasons;
  /** Parses a body that came as bytes. Absent: all of it is parsed. */
  json?(bytes: Uint8Array): CallJson;
  /** @param messages of the body's request, which has others in their place; null: all of it is parsed @returns null for what only a newer worker knows */
  parse(body: unknown, messages: DeferredMessages | null): Work | InvalidItem | null;
  header(work: Work): ItemHeader;
  /** For log lines. */
  ids(work: Work): Record<string, unknown>;
  /** Until its deadline, by the clock that decides it. */
  remainingMs(work: Work): number;
  /** Follows what may cancel the item, until it is released. A promise delays the execution. Absent: its items are never cancelled. */
  watch?(work: Work, running: RunningItem, publishedAtMs: number): void | Promise<void>;
  /** Absent: the item has no span. `of` returns null for what is not recorded. Without `end`, `execute` and `refuse` end the span that they return with. */
  trace?: { of(work: Work, running: RunningItem): ItemTrace | null; end?(result: Result | null, running: RunningItem): void };
  /** @throws when the item is to be redelivered; always when the lease was lost before the result was whole */
  execute(work: Work, running: RunningItem): Promise<Outcome<Result>>;
  /** The failure, for the owner or the reader. @throws as `execute` */
  refuse(work: Work, refusal: Refusal, running: RunningItem): Promise<Outcome<Result>>;
  /** Null: the result goes to no owner. */
  commandOf(work: Work, result: Result): ResultCommand | null;
  /** In place of a result that exceeds the largest body. Absent: results are bounded. */
  whenTooLarge?(failure: Failure): Result;
}

/** A row of a table of kinds with different work. */
export type AnyItemKind = ItemKind<unknown, unknown>;
