import type { Subscription, WorkItem } from '#bus/bus.ts';
import type { CallJson } from '#bus/messages/deferred-call.ts';
import { versionOf } from '#bus/messages/version-of.ts';
import { renewLease } from '#bus/renew-lease.ts';
import { failPoint } from '#shared/fail-points.ts';
import { jsonIn } from '#shared/json-in.ts';
import { noteText } from '#shared/lifecycle/heap.ts';
import { workMarks } from '#shared/telemetry/work-marks.ts';
import { ItemBudget } from './item-budget.ts';
import { InvalidItem, type ItemKind } from './item-kind.ts';
import { BACK_OFF_MS, failItem, type Settling, settleItem } from './settle-item.ts';
import type { WorkDeps } from './work-deps.ts';

/** Time for a worker that knows the version to start. */
const UNKNOWN_VERSION_RETRY_MS = 5_000;
/** Deliveries at which an item without byte budget is nacked, in the hope of another worker: about seven seconds in all. */
const MAX_BUDGET_TRIES = 3;

/** Consumes the items of one kind: parse, extend the lease, execute, report, ack. */
export function consumeKind<Work, Result>(kind: ItemKind<Work, Result>, deps: WorkDeps): Subscription {
  const { name, concurrency, lease, bodyBytes } = kind;
  const budget = bodyBytes === null ? null : new ItemBudget(bodyBytes);
  return deps.bus.work.consume(name, { concurrency, ackWaitMs: lease.ackWaitMs }, async (item) => {
    workMarks.mark(name);
    const { bytes } = item;
    noteText(bytes?.byteLength ?? item.body.length);
    if (item.deliveryCount > 1) deps.metrics.add('redeliveries', { kind: name });
    const leave = budget === null ? unlimited : budget.acquire(bytes?.byteLength ?? Buffer.byteLength(item.body));
    try {
      // no fail point: returns
      if (leave === null && item.deliveryCount <= MAX_BUDGET_TRIES) await item.nak(BACK_OFF_MS * 2 ** (item.deliveryCount - 1));
      else await handle(item, leave !== null, kind, deps); // no fail point: inside
    } finally {
      leave?.();
    }
  });
}

function unlimited(): void {}

async function handle<Work, Result>(item: WorkItem, hasBudget: boolean, kind: ItemKind<Work, Result>, deps: WorkDeps): Promise<void> {
  const work = workIn(item, kind);
  if (work === null) return item.nak(UNKNOWN_VERSION_RETRY_MS);
  if (work instanceof InvalidItem) return item.term(work.reason);
  const running = deps.running.begin(item.deliveryCount, kind.remainingMs(work), kind.endReasons);
  running.attempt = item.attempt ?? item.deliveryCount;
  const onLost = () => running.end('lease-lost');
  const lease = renewLease(item, kind.lease, { onLost, deadlines: deps.running.deadlines, log: deps.log });
  const settling: Settling<Work, Result> = { item, work, header: kind.header(work), hasBudget, kind, running, deps };
  try {
    const watching = kind.watch?.(work, running, item.publishedAtMs);
    if (watching !== undefined) await watching;
    failPoint('item.taken');
    await settleItem(settling); // no fail point: inside
  } catch (error) {
    await failItem(settling, error); // no fail point: inside
  } finally {
    lease.stop();
    running.release();
  }
}

/** @returns null for what is left to a newer worker */
function workIn<Work, Result>(item: WorkItem, kind: ItemKind<Work, Result>): Work | InvalidItem | null {
  const { body, messages } = jsonOf(item, kind);
  // It would stay in memory for minutes.
  if (kind.bodyBytes !== null) item.body = '';
  const version = versionOf(body);
  if (version === null) return new InvalidItem('not a message of ours');
  return version > kind.newestVersion ? null : kind.parse(body, messages);
}

function jsonOf<Work, Result>(item: WorkItem, { json }: ItemKind<Work, Result>): CallJson {
  const { bytes } = item;
  return bytes && json ? json(bytes) : { body: jsonIn(item.body), messages: null };
}
