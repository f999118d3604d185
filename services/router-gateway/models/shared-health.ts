import { z } from 'zod';
import type { Clock } from '#shared/clock.ts';
import type { EndpointConfig } from '#shared/config/router-config.ts';
import { healthIdOf } from '#shared/health/health-id.ts';
import { BUCKETS, totalOf } from '#shared/health/log-buckets.ts';
import { measuredSpeedOf, type Percentiles } from '#shared/health/measured-speed.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { within } from '#shared/within.ts';
import type { Measured, MeasuredEndpoints } from './measured.ts';

/** As router workers write them (services/router-worker/call/health, ADR 66). */
const WRITERS = 64;
const KEYS = ['health', 'health-listed'].flatMap((name) => Array.from({ length: WRITERS }, (_, index) => `${name}:${index}`));
/** Workers write every 2 s. */
const VALID_MS = 2_000;
/** A list without what is measured is better than one that waits for the cache. */
const READ_MS = 250;
/** Kept without the cache, as workers do. */
const LIFETIME_MS = 10_000;
const MAX_ENDPOINTS = 20_000;
/** Fewer attempts say nothing of an uptime. */
const UPTIME_SAMPLES = 10;
const UNKNOWN_UPTIME = { last5m: null, last30m: null, last1d: null };
/** More than a quarter of at least ten calls. */
const OUTAGE = { samples: 10, share: 0.25 };

const count = z.number().int().min(0);
const pairs = z.array(count).max(2 * BUCKETS);
/** Behind the histograms may be more. */
const states = z.tuple([z.string(), count, count, count, count, count, count, pairs, pairs], z.unknown());
/** Attempts and failures of some 5 minutes, and of 30. */
const uptimes = z.tuple([count, count, count, count]);
/** For lists alone: speeds of some 30 minutes, attempts and failures of a day. */
const listedEntry = z.tuple([z.string(), pairs, pairs, count, count], z.unknown());
const listed = z.object({ v: z.literal(1), l: z.array(z.unknown()) });
const snapshot = z.object({ v: z.literal(1), c: z.array(z.unknown()), e: z.array(z.unknown()) });

interface Seen {
  samples: number;
  failures: number;
  isOpen: boolean;
  /** Of some 5 minutes, for workers that share no more. */
  firstToken: Uint32Array;
  throughput: Uint32Array;
  listed: { firstToken: Uint32Array; throughput: Uint32Array; samples: number; failures: number };
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
    // The clock may have been set back.
    if (Math.abs(this.#clock.nowMs() - this.#readAtMs) < VALID_MS) return;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
    });
    await within(READ_MS, this.#reading, () => {});
  }

  of(endpoint: EndpointConfig): Measured | null {
    const seen = this.#endpoints.get(healthIdOf(endpoint));
    if (seen === undefined)
      return this.#providers.has(endpoint.provider) ? { status: -2, latencyMs: null, tokensPerSecond: null, uptime: UNKNOWN_UPTIME } : null;
    const { tokensPerSecond, firstTokenSeconds } = measuredSpeedOf(
      longer(seen.listed.firstToken, seen.firstToken),
      longer(seen.listed.throughput, seen.throughput),
    );
    const isFailing = seen.samples >= OUTAGE.samples && seen.failures > seen.samples * OUTAGE.share;
    return {
      status: seen.isOpen || this.#providers.has(endpoint.provider) ? -2 : isFailing ? -1 : 0,
      latencyMs: rounded(firstTokenSeconds, 1_000),
      tokensPerSecond: rounded(tokensPerSecond, 1),
      uptime: { last5m: percentOf(seen.recent), last30m: percentOf(seen.all), last1d: percentOf(seen.listed) },
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
    for (const text of texts) for (const entry of listed.safeParse(parsed(text)).data?.l ?? []) this.#addListed(entry);
  }

  #addListed(entry: unknown): void {
    const { data } = listedEntry.safeParse(entry);
    if (data === undefined) return;
    const [id, firstToken, throughput, samples, failures] = data;
    const seen = this.#seen(id);
    if (seen === null) return;
    addTo(seen.listed.firstToken, firstToken);
    addTo(seen.listed.throughput, throughput);
    seen.listed.samples += samples;
    seen.listed.failures += failures;
  }

  #add(entry: unknown): void {
    const { data } = states.safeParse(entry);
    if (data === undefined) return;
    const [id, samples, failures, openMs, refusedMs, cooldownMs, , firstToken, throughput, uptime] = data;
    const seen = this.#seen(id);
    if (seen === null) return;
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
  }

  /** Null: there are too many. */
  #seen(id: string): Seen | null {
    const known = this.#endpoints.get(id);
    if (known !== undefined) return known;
    if (this.#endpoints.size >= MAX_ENDPOINTS) return null;
    const speeds = () => ({ firstToken: new Uint32Array(BUCKETS), throughput: new Uint32Array(BUCKETS) });
    const none = () => ({ samples: 0, failures: 0 });
    const seen = { ...none(), ...speeds(), isOpen: false, listed: { ...speeds(), ...none() }, recent: none(), all: none() };
    this.#endpoints.set(id, seen);
    return seen;
  }
}

/** Workers share the longer window later, and those of the release before do not. */
function longer(listedCounts: Uint32Array, recent: Uint32Array): Uint32Array {
  return totalOf(listedCounts) < totalOf(recent) ? recent : listedCounts;
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
