import { z } from 'zod';
import type { Bus, Subscription, WorkItem } from '#bus/bus.ts';
import { versionOf } from '#bus/messages/version-of.ts';
import type { ReceivedAborts } from '#bus/received-aborts.ts';
import { type LeaseTimes, renewLease } from '#bus/renew-lease.ts';
import type { Clock } from '#shared/clock.ts';
import type { Deadlines } from '#shared/deadlines.ts';
import { isEffectOpen, mayBeDoneAlready } from '#shared/effects/effect-state.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import { jsonIn } from '#shared/json-in.ts';
import type { Database } from '#shared/storage/database.ts';
import { retryWhileTransient } from '#shared/storage/retry-while-transient.ts';
import { actorIds } from '#shared/telemetry/actor-ids.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import { traceIdIn } from '#shared/telemetry/trace-context.ts';
import type { Span, Tracing } from '#shared/telemetry/tracing.ts';
import { workMarks } from '#shared/telemetry/work-marks.ts';
import { type ItemTrace, itemSpan } from './item-span.ts';
import { reasonOf } from './reason-of.ts';
import { type Report, reportResult } from './report-result.ts';
import type { RunningItem, RunningItems } from './running-items.ts';

/** An item that ended five workers would end the sixth. */
const MAX_DELIVERIES = 5;
/** Time for a worker that knows the version to start. */
const UNKNOWN_VERSION_RETRY_MS = 5_000;
/** After the first failure; doubled after each. */
const FAULT_RETRY_MS = 1_000;

export interface EffectWork {
  effectId: string;
  sessionId: string;
  deadlineAtMs: number;
  republished: boolean;
  traceparent: string | null;
  /** The turn or run that waits for the effect. */
  actorId?: string;
}

export interface ItemExecution extends RunningItem {
  mayBeStarted: boolean;
}

/** Handler of one kind of items. A null report: nothing is reported. */
export interface ItemKind<Work extends EffectWork> {
  name: 'tool' | 'delivery';
  schema: z.ZodType<Work>;
  /** The newest that `schema` reads; newer items are left to newer workers. */
  newestVersion: number;
  /** Whether items without an effect row are dropped. Not deliveries: a replayed dead letter has no row. */
  needsEffectRow: boolean;
  /** Null: its items are never aborted. */
  aborts: ReceivedAborts | null;
  /** Absent where the kind makes its own spans. */
  trace?: { of(work: Work): ItemTrace; end(span: Span, report: Report | null): void };
  perform(work: Work, execution: ItemExecution): Promise<Report | null>;
  /** For an item that arrives past its deadline. */
  skip(work: Work, execution: ItemExecution): Promise<Report | null>;
  /** After `MAX_DELIVERIES` failures. */
  giveUp(work: Work, reason: string, body: string, execution: ItemExecution): Promise<Report | null>;
}

export interface ConsumeDeps {
  bus: Bus;
  database: Database;
  clock: Clock;
  deadlines: Deadlines;
  log: Log;
  metrics: Metrics;
  running: RunningItems;
  tracing: Tracing;
  lease: LeaseTimes;
}

/** Consumes items of one kind: validate, extend the lease, handle, report, ack. */
export function consumeItems<Work extends EffectWork>(kind: ItemKind<Work>, concurrency: number, deps: ConsumeDeps): Subscription {
  return deps.bus.work.consume(kind.name, { concurrency, ackWaitMs: deps.lease.ackWaitMs }, (item) => handle(item, kind, deps));
}

async function handle<Work extends EffectWork>(item: WorkItem, kind: ItemKind<Work>, deps: ConsumeDeps): Promise<void> {
  workMarks.mark(kind.name);
  if (item.deliveryCount > 1) deps.metrics.add('redeliveries', { kind: kind.name });
  const body = jsonIn(item.body);
  const version = versionOf(body);
  if (version === null) return item.term('not a message of ours');
  if (version > kind.newestVersion) return item.nak(UNKNOWN_VERSION_RETRY_MS);
  const parsed = kind.schema.safeParse(body);
  if (!parsed.success) return item.term(`not an item of this kind: ${z.prettifyError(parsed.error)}`);
  const work = parsed.data;
  const running = deps.running.begin(work.deadlineAtMs);
  const mayBeStarted = mayBeDoneAlready(item, work.republished, deps.clock.nowMs());
  const execution: ItemExecution = { ...running, mayBeStarted };
  const unfollow = kind.aborts?.follow(work.effectId, () => running.cancel());
  const lease = renewLease(item, deps.lease, { onLost: () => running.loseLease(), deadlines: deps.deadlines, log: deps.log });
  failPoint('item.taken');
  try {
    await settle(item, work, execution, kind, deps);
  } catch (error) {
    await fail(item, work, execution, error, kind, deps); // no fail point: inside
  } finally {
    lease.stop();
    unfollow?.();
    running.release();
  }
}

/**
 * Reports first and acks after it: a crash between the two leads to a redelivery, not to a lost result. A cancelled item is
 * not reported: its effect was superseded.
 */
async function settle<Work extends EffectWork>(item: WorkItem, work: Work, execution: ItemExecution, kind: ItemKind<Work>, deps: ConsumeDeps): Promise<void> {
  if (execution.isCancelled()) return item.ack();
  if (execution.mayBeStarted) {
    // The row is closed when the result has arrived or the effect was superseded.
    const isOpen = await retryWhileTransient(() => isEffectOpen(deps.database, work.effectId), execution.leaseLost); // no fail point: reads
    if (isOpen === false || (isOpen === null && kind.needsEffectRow)) return item.ack();
  }
  const report = await traced(item, work, execution, kind, deps);
  failPoint('item.done');
  deps.log.info({ ...idsOf(work), kind: kind.name, delivery: item.deliveryCount, result: report?.type ?? null }, 'a work item has ended');
  // Reported even if the lease was lost: of two results with one id the log takes the first.
  if (report !== null && !execution.isCancelled()) {
    await reportResult(work, report, execution.leaseLost, { commands: deps.bus.commands, clock: deps.clock, log: deps.log }); // no fail point: inside
  }
  await item.ack();
  failPoint('item.acked');
}

async function traced<Work extends EffectWork>(
  item: WorkItem,
  work: Work,
  execution: ItemExecution,
  kind: ItemKind<Work>,
  deps: ConsumeDeps,
): Promise<Report | null> {
  const { effectId: id, traceparent: parent } = work;
  const span = itemSpan(deps.tracing, kind.trace?.of(work) ?? null, { id, number: item.deliveryCount, mayBeSecond: execution.mayBeStarted, parent });
  if (span === null) return outcomeOf(item, work, execution, kind, deps);
  try {
    const report = await outcomeOf(item, { ...work, traceparent: span.traceparent }, execution, kind, deps); // no fail point: inside
    kind.trace?.end(span, report);
    return report;
  } catch (error) {
    span.end(execution.leaseLost.aborted ? 'abandoned' : execution.isCancelled() ? 'cancelled' : failureOf(error).code);
    throw error;
  }
}

function outcomeOf<Work extends EffectWork>(
  item: WorkItem,
  work: Work,
  execution: ItemExecution,
  kind: ItemKind<Work>,
  { clock }: ConsumeDeps,
): Promise<Report | null> {
  if (work.deadlineAtMs <= clock.nowMs()) return kind.skip(work, execution);
  if (item.deliveryCount > MAX_DELIVERIES) return kind.giveUp(work, `its worker died ${MAX_DELIVERIES} times`, item.body, execution);
  return kind.perform(work, execution);
}

/** Naks with a back-off, or gives the item up after the last delivery. An error in here leaves the item to the end of its lease. */
async function fail<Work extends EffectWork>(
  item: WorkItem,
  work: Work,
  execution: ItemExecution,
  error: unknown,
  kind: ItemKind<Work>,
  { bus, clock, log }: ConsumeDeps,
): Promise<void> {
  if (execution.leaseLost.aborted) return item.nak(0);
  if (execution.isCancelled()) return item.ack();
  log.error({ err: error, ...idsOf(work), delivery: item.deliveryCount }, 'a work item has failed');
  if (item.deliveryCount < MAX_DELIVERIES) return item.nak(FAULT_RETRY_MS * 2 ** (item.deliveryCount - 1));
  const report = await kind.giveUp(work, reasonOf(error), item.body, execution); // no fail point: dead-letters
  if (report !== null) await reportResult(work, report, execution.leaseLost, { commands: bus.commands, clock, log }); // no fail point: inside
  await item.ack(); // no fail point, because item.acked above leaves the same state
}

/** For log lines. */
export function idsOf({ effectId, sessionId, traceparent, actorId }: EffectWork) {
  const ids = { effect_id: effectId, session_id: sessionId, trace_id: traceIdIn(traceparent) };
  return actorId === undefined ? ids : { ...ids, ...actorIds(actorId) };
}
