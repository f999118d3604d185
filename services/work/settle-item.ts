import type { WorkItem } from '#bus/bus.ts';
import { lostLease } from '#bus/lost-lease.ts';
import { partitionOf } from '#bus/partition.ts';
import { isEffectOpen, mayBeDoneAlready } from '#shared/effects/effect-state.ts';
import { storeDeadLetter } from '#shared/effects/store-dead-letter.ts';
import { type Failure, failureOf } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import { retryWhileTransient } from '#shared/storage/retry-while-transient.ts';
import { noTracing, type Span } from '#shared/telemetry/tracing.ts';
import type { ItemHeader, ItemKind, Outcome, Refusal } from './item-kind.ts';
import { itemSpan } from './item-span.ts';
import { reasonOf } from './reason-of.ts';
import { reportResult } from './report-result.ts';
import type { RunningItem } from './running-items.ts';
import type { WorkDeps } from './work-deps.ts';

/** What crashed five workers would crash the sixth. */
const MAX_DELIVERIES = 5;
/** After the first failure; doubled after each. */
export const BACK_OFF_MS = 1_000;

/** One delivery of an item. */
export interface Settling<Work, Result> {
  item: WorkItem;
  work: Work;
  header: ItemHeader;
  hasBudget: boolean;
  kind: ItemKind<Work, Result>;
  running: RunningItem;
  deps: WorkDeps;
}

/**
 * Executes an item, or refuses it, then reports and acks. A crash between the last two leads to a redelivery, not to a lost result. A cancelled
 * item is not reported: its effect was superseded.
 *
 * @throws what `failItem` settles
 */
export async function settleItem<Work, Result>(one: Settling<Work, Result>): Promise<void> {
  const { item, work, header, kind, running, deps } = one;
  running.mayBeStarted = header.sessionId !== null && mayBeDoneAlready(item, header.republished, deps.clock.nowMs());
  if (running.mayBeStarted && !(await isAwaited(one))) return item.ack(); // no fail point: reads
  const outcome = await traced(one, refusalOf(one));
  failPoint('item.done');
  if (outcome === 'again') return item.nak(BACK_OFF_MS);
  const command = outcome === null ? null : kind.commandOf(work, outcome);
  if (!kind.writesOwnLine)
    deps.log.info({ ...kind.ids(work), kind: kind.name, delivery: item.deliveryCount, result: command?.type ?? null }, 'a work item has ended');
  // Reported even if the lease was lost since: of two results with one id the log takes the first.
  if (outcome !== null && !running.isCancelled()) await report(one, outcome); // no fail point: inside
  await item.ack();
  failPoint('item.acked');
}

/** The effect's row is closed when the result has arrived or the effect was superseded. */
async function isAwaited<Work, Result>({ header, kind, running, deps }: Settling<Work, Result>): Promise<boolean> {
  const isOpen = await retryWhileTransient(() => isEffectOpen(deps.database, header.id), running.leaseLost); // no fail point: reads
  return isOpen ?? !kind.needsEffectRow;
}

/** Null: the item is to be executed. */
function refusalOf<Work, Result>({ item, work, hasBudget, kind, running }: Settling<Work, Result>): Refusal | null {
  if (running.isCancelled()) return { why: 'cancelled' };
  if (running.cause === 'deadline' || kind.remainingMs(work) <= 0) return { why: 'deadline' };
  if (item.deliveryCount > MAX_DELIVERIES) return { why: 'given-up', reason: `its worker died ${MAX_DELIVERIES} times` };
  return hasBudget ? null : { why: 'overloaded' };
}

/** Not async, as `outcomeOf`: each level of promises would cost as much as the rest of both. */
function traced<Work, Result>(one: Settling<Work, Result>, refusal: Refusal | null): Promise<Outcome<Result>> {
  const { item, work, header, kind, running, deps } = one;
  const { id, traceparent: parent } = header;
  const { trace } = kind;
  // Without traces its attributes are not gathered either.
  if (trace === undefined || deps.tracing === noTracing) return outcomeOf(one, refusal);
  running.span = itemSpan(deps.tracing, trace.of(work, running), { id, number: item.deliveryCount, mayBeSecond: running.mayBeStarted, parent });
  return running.span === null ? outcomeOf(one, refusal) : spanned(one, running.span, trace, refusal);
}

async function spanned<Work, Result>(
  one: Settling<Work, Result>,
  span: Span,
  trace: NonNullable<ItemKind<Work, Result>['trace']>,
  refusal: Refusal | null,
): Promise<Outcome<Result>> {
  const { running } = one;
  try {
    const outcome = await outcomeOf(one, refusal); // no fail point: inside
    trace.end?.(outcome === 'again' ? null : outcome, running);
    return outcome;
  } catch (error) {
    span.end(running.isLeaseLost ? 'abandoned' : running.isCancelled() ? 'cancelled' : failureOf(error).code);
    throw error;
  }
}

function outcomeOf<Work, Result>(one: Settling<Work, Result>, refusal: Refusal | null): Promise<Outcome<Result>> {
  return refusal === null ? one.kind.execute(one.work, one.running) : refused(one, refusal);
}

async function refused<Work, Result>(one: Settling<Work, Result>, refusal: Refusal): Promise<Outcome<Result>> {
  const { work, kind, running } = one;
  if (refusal.why === 'given-up') await storeLetter(one, refusal.reason); // no fail point: dead-letters
  return kind.refuse(work, refusal, running);
}

/** The result, where one is lacking, matters more than the letter. @throws once the lease is lost */
async function storeLetter<Work, Result>({ item, work, header, kind, running, deps }: Settling<Work, Result>, reason: string): Promise<void> {
  if (kind.deadLetters === null) return;
  const { id, sessionId } = header;
  const body = item.body === '' ? JSON.stringify(work) : item.body;
  const letter = { id, source: kind.deadLetters, partition: sessionId === null ? null : partitionOf(sessionId), sessionId, reason, body } as const;
  const store = () => storeDeadLetter(deps.database, letter);
  try {
    // A client's call ends without the database.
    // no fail point: dead-letters
    await (sessionId === null ? store() : retryWhileTransient(store, running.leaseLost));
    deps.metrics.add('deadLetters', { source: kind.deadLetters });
  } catch (error) {
    running.leaseLost.throwIfAborted();
    deps.log.warn({ err: error, ...kind.ids(work) }, 'the dead letter of a work item could not be stored');
  }
}

async function report<Work, Result>({ work, header, kind, running, deps }: Settling<Work, Result>, result: Result): Promise<void> {
  const command = kind.commandOf(work, result);
  if (command === null || header.sessionId === null) return;
  const whenTooLarge = (failure: Failure) => (kind.whenTooLarge === undefined ? null : kind.commandOf(work, kind.whenTooLarge(failure)));
  const { bus, clock, log } = deps;
  await reportResult({ header, sessionId: header.sessionId, command, whenTooLarge }, running, { commands: bus.commands, clock, log }); // no fail point: inside
}

/** Naks with a back-off, or gives the item up after the last delivery. An error in here leaves the item to the end of its lease. */
export async function failItem<Work, Result>(one: Settling<Work, Result>, error: unknown): Promise<void> {
  const { item, work, kind, running, deps } = one;
  if (running.isLeaseLost) {
    deps.metrics.add('leasesLost', { kind: kind.name });
    deps.log.warn({ ...kind.ids(work), ...lostLease(item, kind.name) }, 'a work item whose lease was lost is left to its next delivery');
    return item.nak(0);
  }
  if (running.isCancelled() && !kind.storesCancelled) return item.ack();
  deps.log.error({ err: error, ...kind.ids(work), delivery: item.deliveryCount }, 'a work item has failed');
  if (item.deliveryCount < MAX_DELIVERIES) return item.nak(BACK_OFF_MS * 2 ** (item.deliveryCount - 1));
  const outcome = await outcomeOf(one, { why: 'given-up', reason: reasonOf(error) }); // no fail point: dead-letters
  if (outcome === 'again') return item.nak(BACK_OFF_MS);
  if (outcome !== null) await report(one, outcome); // no fail point: inside
  await item.ack(); // no fail point, because item.acked above leaves the same state
}
