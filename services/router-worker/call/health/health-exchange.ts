import type { Clock } from '#shared/clock.ts';
import { ulid } from '#shared/ids.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Health } from './health.ts';
import { type HealthSnapshot, readSnapshot } from './health-snapshot.ts';
import { OthersHealth } from './others-health.ts';

const EVERY_MS = 2_000;
/** Of a worker that has ended, or that the cache has lost. Five rounds: one that is late loses nothing. */
const LIFETIME_MS = 10_000;
/** What lists of endpoints show changes slowly. In rounds. */
const LISTED_EVERY = 5;
const LISTED_LIFETIME_MS = 60_000;
/** One key each, so that the cache has at most so many values of 64 KiB. Further workers read what the others share. */
const KEYS = 64;

const keys = Array.from({ length: KEYS }, (_, index) => `health:${index}`);

interface ExchangeDeps {
  cache: Cache;
  health: Health;
  clock: Clock;
  log: Log;
}

interface Read {
  text: string;
  snapshot: HealthSnapshot | null;
}

/**
 * Shares what workers know of endpoints, without coordination (ADR 66): each writes all that it has seen under a key of its own, and reads the others'. A write
 * that is lost, late or done twice changes nothing that the next one does not repair. Without the cache each has its own view after 10 s.
 */
export class HealthExchange {
  readonly #deps: ExchangeDeps;
  readonly #worker = ulid();
  /** Index of the key that it writes; null: none yet, or all are taken. */
  #own: number | null = null;
  #read: (Read | null)[] = [];
  #readAtMs = Number.NEGATIVE_INFINITY;
  /** Until what lists show is written again; others read it as of this worker's key. */
  #untilListed = 0;
  #isAway = false;
  #isStopped = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(deps: ExchangeDeps) {
    this.#deps = deps;
  }

  /** @param afterMs of the first round */
  start(afterMs = 0): void {
    const run = () => {
      void this.round().then(() => {
        if (!this.#isStopped) this.start(EVERY_MS);
      });
    };
    this.#timer = setTimeout(run, afterMs).unref();
  }

  stop(): void {
    this.#isStopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  /** Reads what others share, and writes this worker's. Never rejects. */
  async round(): Promise<void> {
    const { cache, log, health } = this.#deps;
    try {
      this.#take(await cache.getMany(keys));
      if (this.#own !== null) await this.#write(this.#own);
      if (this.#isAway) log.info({}, 'the health of endpoints is shared with other workers again');
      this.#isAway = false;
    } catch (error) {
      if (!this.#isAway && !this.#isStopped) log.warn({ err: error }, 'the cache is away: the health of endpoints is what this worker sees by itself');
      this.#isAway = true;
      if (this.#deps.clock.nowMs() - this.#readAtMs >= LIFETIME_MS) health.learn(new OthersHealth());
    }
  }

  async #write(own: number): Promise<void> {
    const { cache, health } = this.#deps;
    await cache.set(keys[own] ?? '', health.snapshot(this.#worker), LIFETIME_MS);
    this.#untilListed -= 1;
    if (this.#untilListed > 0) return;
    await cache.set(`health-listed:${own}`, health.listed(this.#worker), LISTED_LIFETIME_MS);
    this.#untilListed = LISTED_EVERY;
  }

  #take(texts: readonly (string | null)[]): void {
    const nowMs = this.#deps.clock.nowMs();
    // Times of a snapshot count from its first reading: it may be that of a worker that has ended.
    this.#read = texts.map((text, index) => {
      if (text === null) return null;
      const known = this.#read[index];
      return known?.text === text ? known : { text, snapshot: readSnapshot(text, nowMs) };
    });
    this.#readAtMs = nowMs;
    this.#chooseKey();
    const snapshots = this.#read.flatMap((read) => read?.snapshot ?? []);
    this.#deps.health.learn(new OthersHealth(snapshots.filter(({ worker }) => worker !== this.#worker)));
  }

  /** A free one at random. Two workers that choose the same one see it in the next round, and all but the last to write choose again. */
  #chooseKey(): void {
    if (this.#own !== null) {
      const read = this.#read[this.#own];
      if (read == null || read.snapshot?.worker === this.#worker) return;
    }
    const free = keys.flatMap((_, index) => (this.#read[index] == null ? [index] : []));
    this.#own = free[Math.floor(Math.random() * free.length)] ?? null;
  }
}
