import type { EventWork } from '#bus/messages/event-delivery.ts';
import type { ResultCommand } from '#services/work/item-kind.ts';
import type { RunningItem } from '#services/work/running-items.ts';
import type { Clock } from '#shared/clock.ts';
import type { BundleCache } from '#shared/config/bundle-cache.ts';
import { agentApiKey } from '#shared/config/load-bundle.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { GuardedPoster } from '#shared/http/guarded-post.ts';
import type { Database } from '#shared/storage/database.ts';
import { retryWhileTransient } from '#shared/storage/retry-while-transient.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import { readEvents } from './event-rows.ts';
import { type Attempt, postOnce } from './post-once.ts';
import { UNCHECKED } from './receiver-breaker.ts';
import { leaveBreaker, type Receivers } from './receivers.ts';

interface Deps {
  database: Database;
  bundles: BundleCache;
  environment: Environment;
  poster: Pick<GuardedPoster, 'post'>;
  /** Of events, apart from those of callbacks: neither waits for the other. */
  receivers: Receivers;
  timeoutMs: number;
  /** Of the deadlines. */
  clock: Clock;
  /** Monotonic: of lengths of time within a round. */
  intervalClock: Clock;
  log: Log;
  metrics: Metrics;
}

/** What the owner gets. */
export type EventReport = Extract<ResultCommand, { type: 'event-webhook.reported' }>;

/** No further event is begun after it, so that the cursor moves while a long log is posted. */
const ROUND_MS = 5_000;
/** An event that waited longer is posted although many wait for its receiver, or its breaker is open. The share that a host has of the worker may still postpone it. */
const MAX_POSTPONED_MS = 600_000;
const BUSY_MS = 1_000;
/** An event that was read longer ago is read again right before its request: it may be deleted since. */
const FRESH_MS = 1_000;
/** Jitter of pauses, so that postponed rounds do not return together. */
const SPREAD_MS = 4_000;

interface Posting {
  apiKey: string;
  offset: number;
  text: string;
  /** When `text` was requested from the database, by the interval clock. */
  readAtMs: number;
  attempt: number;
}

/**
 * One round of an event webhook: the events of the interval, one request each, the next after the response to the one before. Ends at the first event that
 * is not accepted. After a crash they are posted again from the round's first: receivers discard what they have by session and offset.
 */
export async function postEvents(work: EventWork, running: RunningItem, deps: Deps): Promise<EventReport> {
  const { database, bundles, environment, clock, intervalClock } = deps;
  const bundle = await retryWhileTransient(() => bundles.read(work.bundleHash), running.signal); // no fail point: reads
  const apiKey = agentApiKey(bundle, environment);
  const endAtMs = intervalClock.nowMs() + Math.min(ROUND_MS, work.deadlineAtMs - clock.nowMs());
  let next = work.fromOffset;
  for (;;) {
    const from = next;
    const readAtMs = intervalClock.nowMs();
    const page = await retryWhileTransient(() => readEvents(database, work, from), running.signal); // no fail point: reads
    if (page.length === 0) return posted(work.toOffset);
    for (const { offset, text } of page) {
      if (next > work.fromOffset && intervalClock.nowMs() >= endAtMs) return posted(next);
      const attempt = offset === work.fromOffset ? work.attempts + 1 : 1;
      const outcome = await postEvent({ apiKey, offset, text, readAtMs, attempt }, work, running, deps); // no fail point: inside
      if (typeof outcome === 'object' && 'type' in outcome) return outcome;
      if (!outcome.delivered) return report('failed', offset, outcome.reason, outcome.retryAfterMs);
      next = offset + 1;
    }
  }
}

/** @returns a report when nothing was posted, and the round ends */
async function postEvent(event: Posting, work: EventWork, running: RunningItem, deps: Deps): Promise<Attempt | EventReport> {
  const receiver = deps.receivers.of(work.url);
  const isOverdue = work.waitingSinceMs !== null && deps.clock.nowMs() - work.waitingSinceMs > MAX_POSTPONED_MS;
  if (receiver.isFull(isOverdue)) return postponed(event.offset, 'busy', BUSY_MS, deps);
  return receiver.withSlot(running.signal, async () => {
    const current = await freshOf(event, work, running, deps); // no fail point: reads
    // Its receiver lacks nothing.
    if (current === null) return { status: null, delivered: true };
    const pass = isOverdue ? UNCHECKED : receiver.breaker.enter();
    if (typeof pass === 'number') return postponed(event.offset, 'silent', pass, deps);
    let outcome: Attempt | null = null;
    try {
      outcome = await post(current, work, running, deps); // no fail point: inside
      deps.metrics.add('eventAttempts', { outcome: outcome.delivered ? 'delivered' : 'failed' });
      return outcome;
    } finally {
      leaveBreaker(receiver, pass, outcome, deps.log);
    }
  });
}

/** The event as it is stored now; null: it is deleted. The request follows in the same tick, or it would be read again. */
async function freshOf(event: Posting, work: EventWork, running: RunningItem, { database, intervalClock }: Deps): Promise<Posting | null> {
  let current = event;
  while (intervalClock.nowMs() - current.readAtMs >= FRESH_MS) {
    const readAtMs = intervalClock.nowMs();
    const one = { ...work, toOffset: event.offset + 1 };
    const [found] = await retryWhileTransient(() => readEvents(database, one, event.offset), running.signal); // no fail point: reads
    if (found === undefined) return null;
    current = { ...event, text: found.text, readAtMs };
  }
  return current;
}

function post({ apiKey, text, attempt }: Posting, work: EventWork, running: RunningItem, { poster, timeoutMs }: Deps): Promise<Attempt> {
  const headers = {
    authorization: `Bearer ${apiKey}`,
    'content-type': 'application/json',
    'x-session-id': work.sessionId,
    'x-switchyard-attempt': String(attempt),
    ...(work.traceparent === null ? {} : { traceparent: work.traceparent }),
  };
  return postOnce(poster, { url: work.url, hostAllowlist: null, headers, body: Buffer.from(text, 'utf8'), timeoutMs, signal: running.leaseLost });
}

/** Uses up no attempt: the owner makes another round after the pause. */
function postponed(offset: number, why: 'silent' | 'busy', waitMs: number, { metrics }: Deps): EventReport {
  metrics.add('eventsPostponed', { reason: why });
  const reason = why === 'silent' ? 'the circuit breaker of its receiver is open' : 'too many events for its receiver are in flight';
  return report('postponed', offset, reason, Math.round(waitMs + Math.random() * SPREAD_MS));
}

function posted(nextOffset: number): EventReport {
  return report('posted', nextOffset, null, null);
}

/** A round that was given up counts as an attempt for its first event. */
export function givenUpRound({ fromOffset }: EventWork, reason: string): EventReport {
  return report('failed', fromOffset, reason, null);
}

function report(outcome: EventReport['outcome'], nextOffset: number, reason: string | null, retryAfterMs: number | null): EventReport {
  return { type: 'event-webhook.reported', outcome, nextOffset, reason, retryAfterMs };
}
