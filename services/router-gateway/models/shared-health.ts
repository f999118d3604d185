import { z } from 'zod';
import type { Clock } from '#shared/clock.ts';
import type { EndpointConfig } from '#shared/config/router-config.ts';
import { healthIdOf } from '#shared/health/health-id.ts';
import { BUCKETS } from '#shared/health/log-buckets.ts';
import { measuredSpeedOf, type Percentiles } from '#shared/health/measured-speed.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { within } from '#shared/within.ts';
import type { Measured, MeasuredEndpoints } from './measured.ts';

/** As router workers write them (services/router-worker/call/health, ADR 66). */
const KEYS = Array.from({ length: 64 }, (_, index) => `health:${index}`);
/** Workers write every 2 s. */
const VALID_MS = 2_000;
/** A list without what is measured is better than one that waits for the cache. */
const READ_MS = 250;
/** Kept without the cache, as workers do. */
const LIFETIME_MS = 10_000;
const MAX_ENDPOINTS = 20_000;
/** Fewer attempts say nothing of an uptime. */
const UPTIME_SAMPLES = 10;
const UNKNOWN_UPTIME = { last5m: null, last30m: null };
/** More than a quarter of at least ten calls. */
const OUTAGE = { samples: 10, share: 0.25 };

const count = z.number().int().min(0);
const pairs = z.array(count).max(2 * BUCKETS);
/** Behind the histograms may be more. */
const states = z.tuple([z.string(), count, count, count, count, count, count, pairs, pairs], z.unknown());
/** Attempts and failures of some 5 minutes, and of 30. */
const uptimes = z.tuple([count, count, count, count]);
const snapshot = z.object({ v: z.literal(1), c: z.array(z.unknown()), e: z.array(z.unknown()) });

interface Seen {
  samples: number;
  failures: number;
  isOpen: boolean;
  firstToken: Uint32Array;
  throughput: Uint32Array;
  recent: { samples: number; failures: number };
  all: { samples: number; failures: number };
}

/** What router workers share of their endpoints' health, for lists of them. */
export class SharedHealth implements MeasuredEndpoints {
  readonly #cache: Cache;
  readonly #clock: Clock;
  #endpoints = new Map<string, Seen>();
  /** That refuse the credential. */
  #providers = new Set<unknown>();
  #readAtMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | null = null;

  constructor({ cache, clock }: { cache: Cache; clock: Clock }) {
    this.#cache = cache;
    this.#clock = clock;
  }

  async refresh(): Promise<void> {
    if (this.#clock.nowMs() - this.#readAtMs < VALID_MS) return;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
    });
    await within(READ_MS, this.#reading, () => {});
  }

  of(endpoint: EndpointConfig): Measured | null {
    const seen = this.#endpoints.get(healthIdOf(endpoint));
    if (seen === undefined)
      return this.#providers.has(endpoint.provider) ? { status: -2, latencyMs: null, tokensPerSecond: null, uptime: UNKNOWN_UPTIME } : null;
    const { tokensPerSecond, firstTokenSeconds } = measuredSpeedOf(seen.firstToken, seen.throughput);
    const isFailing = seen.samples >= OUTAGE.samples && seen.failures > seen.samples * OUTAGE.share;
    return {
      status: seen.isOpen || this.#providers.has(endpoint.provider) ? -2 : isFailing ? -1 : 0,
      latencyMs: rounded(firstTokenSeconds, 1_000),
      tokensPerSecond: rounded(tokensPerSecond, 1),
      uptime: { last5m: percentOf(seen.recent), last30m: percentOf(seen.all) },
    };
  }

  async #read(): Promise<void> {
    try {
      this.#take(await this.#cache.getMany(KEYS));
      this.#readAtMs = this.#clock.nowMs();
    } catch {
      if (this.#clock.nowMs() - this.#readAtMs >= LIFETIME_MS) this.#take([]);
    }
  }

  #take(texts: readonly (string | null)[]): void {
    this.#endpoints = new Map();
    this.#providers = new Set();
    for (const text of texts) {
      const { data } = snapshot.safeParse(parsed(text));
      for (const entry of data?.e ?? []) this.#add(entry);
      for (const entry of data?.c ?? []) if (Array.isArray(entry)) this.#providers.add(entry[0]);
    }
  }

  #add(entry: unknown): void {
    const { data } = states.safeParse(entry);
    if (data === undefined) return;
    const [id, samples, failures, openMs, refusedMs, cooldownMs, , firstToken, throughput, uptime] = data;
    if (this.#endpoints.size >= MAX_ENDPOINTS && !this.#endpoints.has(id)) return;
    const seen = this.#endpoints.get(id) ?? {
      ...{ samples: 0, failures: 0, isOpen: false },
      ...{ firstToken: new Uint32Array(BUCKETS), throughput: new Uint32Array(BUCKETS) },
      ...{ recent: { samples: 0, failures: 0 }, all: { samples: 0, failures: 0 } },
    };
    seen.samples += samples;
    seen.failures += failures;
    seen.isOpen ||= [openMs, refusedMs, cooldownMs].some((ms) => ms > 0);
    addTo(seen.firstToken, firstToken);
    addTo(seen.throughput, throughput);
    const [recentSamples, recentFailures, allSamples, allFailures] = uptimes.safeParse(uptime).data ?? [0, 0, 0, 0];
    seen.recent.samples += recentSamples;
    seen.recent.failures += recentFailures;
    seen.all.samples += allSamples;
    seen.all.failures += allFailures;
    this.#endpoints.set(id, seen);
  }
}

function parsed(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function addTo(sums: Uint32Array, counts: readonly number[]): void {
  for (let at = 0; at + 1 < counts.length; at += 2) {
    const bucket = counts[at] ?? 0;
    if (bucket < BUCKETS) sums[bucket] = (sums[bucket] ?? 0) + (counts[at + 1] ?? 0);
  }
}

function percentOf({ samples, failures }: { samples: number; failures: number }): number | null {
  return samples < UPTIME_SAMPLES ? null : Math.round(((samples - failures) / samples) * 10_000) / 100;
}

function rounded(of: Percentiles | null, factor: number): Percentiles | null {
  const round = (value: number) => Math.round(value * factor * 10) / 10;
  return of === null ? null : { p50: round(of.p50), p75: round(of.p75), p90: round(of.p90), p99: round(of.p99) };
}
