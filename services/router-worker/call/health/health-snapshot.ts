import { BUCKETS } from '#shared/health/log-buckets.ts';
import type { Breaker } from './breaker.ts';
import type { EndpointRecord } from './endpoint-record.ts';
import type { SpeedWindow } from './speed-window.ts';

/** Of the form that follows. A worker ignores snapshots of other versions. */
const VERSION = 1;
/** Less than a value of the cache may have. The endpoints with the longest time without a call are left out. */
const MAX_CHARS = 60_000;
/** Endpoints of one snapshot that are read. */
const MAX_ENTRIES = 2_000;
/** A breaker is reported so long after its time is over: its trial takes a moment, and meanwhile the others wait for the verdict. */
const TRIAL_GRACE_MS = 3_000;
/** Beside the one that is not over. */
const RECENT_MINUTES = 6;
/** No state lasts longer. */
const MAX_STATE_MS = 3_600_000;

/** What one worker has seen of an endpoint. Times are by the reader's clock; in the past: no such state. */
export interface SharedEndpoint {
  id: string;
  samples: number;
  failures: number;
  openUntilMs: number;
  refusedUntilMs: number;
  cooldownUntilMs: number;
  /** Conversations without a session may be bound to it. */
  stickyUntilMs: number;
  /** Pairs of bucket and count. */
  firstToken: readonly number[];
  throughput: readonly number[];
}

export interface HealthSnapshot {
  worker: string;
  endpoints: readonly SharedEndpoint[];
  /** Providers that refuse the credential. */
  credentials: readonly { provider: string; untilMs: number }[];
}

/** What this worker shares for lists of endpoints: speeds of some 30 minutes, and attempts and failures of a day. Those called last come first. */
export function listedText(worker: string, records: Iterable<EndpointRecord>, nowMs: number): string {
  const head = `{"v":${VERSION},"w":${JSON.stringify(worker)},"l":[`;
  const entries = [...records]
    .sort((one, other) => other.usedAtMs - one.usedAtMs)
    .map(({ id, listed: { day, firstToken, throughput } }) => () => {
      const { samples, failures } = day.sums(nowMs);
      return JSON.stringify([id, sparse(firstToken, nowMs), sparse(throughput, nowMs), samples, failures]);
    });
  return `${head}${bounded(entries, head.length).join(',')}]}`;
}

/** What this worker shares. Times are remaining milliseconds, since clocks of workers may differ; 0: no such state. */
export function snapshotText(worker: string, records: Iterable<EndpointRecord>, credentials: ReadonlyMap<string, Breaker>, nowMs: number): string {
  const dead = [...credentials].flatMap(([provider, breaker]) => {
    const ms = reportedMs(breaker, nowMs);
    return ms > 0 ? [[provider, Math.ceil(ms)]] : [];
  });
  const head = `{"v":${VERSION},"w":${JSON.stringify(worker)},"c":${JSON.stringify(dead)},"e":[`;
  const rank = (record: EndpointRecord) => (record.isImpairedAt(nowMs) ? Number.POSITIVE_INFINITY : record.usedAtMs);
  const ordered = [...records].sort((one, other) => (rank(one) < rank(other) ? 1 : rank(one) > rank(other) ? -1 : 0));
  const entries = ordered.map((record) => () => JSON.stringify(entryOf(record, nowMs)));
  return `${head}${bounded(entries, head.length).join(',')}]}`;
}

/** The first of them, as many as fit behind a head. */
function bounded(entries: readonly (() => string)[], headChars: number): string[] {
  const found: string[] = [];
  let chars = headChars;
  for (const textOf of entries) {
    const entry = textOf();
    chars += entry.length + 1;
    if (chars > MAX_CHARS || found.length === MAX_ENTRIES) break;
    found.push(entry);
  }
  return found;
}

function entryOf(record: EndpointRecord, nowMs: number): unknown[] {
  const { samples, failures } = record.window.sums(nowMs);
  const states = [
    reportedMs(record.outage, nowMs),
    reportedMs(record.refusal, nowMs),
    Math.max(0, record.cooldownUntilMs - nowMs),
    Math.max(0, record.stickyUntilMs - nowMs),
  ];
  return [
    record.id,
    samples,
    failures,
    ...states.map(Math.ceil),
    sparse(record.firstToken, nowMs),
    sparse(record.throughput, nowMs),
    ...uptimeOf(record, nowMs),
  ];
}

/** For lists of endpoints alone: attempts and failures of some 5 and 30 minutes. Nothing where there was none. */
function uptimeOf({ uptime }: EndpointRecord, nowMs: number): number[][] {
  const all = uptime.sums(nowMs);
  if (all.samples === 0) return [];
  const recent = uptime.sums(nowMs, RECENT_MINUTES);
  return [[recent.samples, recent.failures, all.samples, all.failures]];
}

function reportedMs(breaker: Breaker, nowMs: number): number {
  return Math.max(0, breaker.openUntilMs + TRIAL_GRACE_MS - nowMs);
}

function sparse(window: SpeedWindow, nowMs: number): number[] {
  const sums = new Uint32Array(BUCKETS);
  window.addTo(sums, nowMs);
  const pairs: number[] = [];
  for (let bucket = 0; bucket < BUCKETS; bucket += 1) if (sums[bucket] !== 0) pairs.push(bucket, sums[bucket] ?? 0);
  return pairs;
}

/** Null: it is none of ours, or of another version. Entries that are not understood are left out. */
export function readSnapshot(text: string, nowMs: number): HealthSnapshot | null {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof body !== 'object' || body === null) return null;
  const { v, w: worker, e: entries, c: credentials } = body as Record<string, unknown>;
  if (v !== VERSION || typeof worker !== 'string' || !Array.isArray(entries) || !Array.isArray(credentials)) return null;
  return {
    worker,
    endpoints: entries.slice(0, MAX_ENTRIES).flatMap((entry) => endpointIn(entry, nowMs) ?? []),
    credentials: credentials.slice(0, MAX_ENTRIES).flatMap((entry) => credentialIn(entry, nowMs) ?? []),
  };
}

function endpointIn(entry: unknown, nowMs: number): SharedEndpoint | null {
  if (!Array.isArray(entry)) return null;
  const [id, samples, failures, openMs, refusedMs, cooldownMs, stickyMs, firstToken, throughput] = entry as unknown[];
  if (typeof id !== 'string' || !isCount(samples) || !isCount(failures) || !isPairs(firstToken) || !isPairs(throughput)) return null;
  if (!isCount(openMs) || !isCount(refusedMs) || !isCount(cooldownMs) || !isCount(stickyMs)) return null;
  const until = (ms: number) => nowMs + Math.min(ms, MAX_STATE_MS);
  return {
    ...{ id, samples, failures, firstToken, throughput },
    ...{ openUntilMs: until(openMs), refusedUntilMs: until(refusedMs), cooldownUntilMs: until(cooldownMs), stickyUntilMs: until(stickyMs) },
  };
}

function credentialIn(entry: unknown, nowMs: number): { provider: string; untilMs: number } | null {
  if (!Array.isArray(entry)) return null;
  const [provider, ms] = entry as unknown[];
  return typeof provider === 'string' && isCount(ms) ? { provider, untilMs: nowMs + Math.min(ms, MAX_STATE_MS) } : null;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isPairs(value: unknown): value is number[] {
  return Array.isArray(value) && value.length <= 2 * BUCKETS && value.every(isCount);
}
