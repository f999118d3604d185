import type { Redis } from 'ioredis';
import { SwitchyardError } from '../../errors/switchyard-error.ts';
import { within } from '../../within.ts';
import type { Cache } from '../cache.ts';
import { checkAddend, checkKey, checkKeys, checkValue, lifetimeMsOf } from '../cache-arguments.ts';
import { corkForTick } from './cork-for-tick.ts';
import { Increments } from './increments.ts';
import { fromRedis, toRedis } from './redis-text.ts';
import { acquireSlots, addToCounters, type Script } from './scripts.ts';
import { MAX_OWNERS, SlotChanges } from './slot-changes.ts';

/** More means that Redis does not keep up. */
const MAX_IN_FLIGHT = 10_000;

/** Redis takes integers; larger ones lose precision in a double. */
const MAX_LIFETIME_MS = 1e15;

/** A caller does better without the cache than with a slower reply. */
const COMMAND_TIMEOUT_MS = 1_000;

/** How long `close` waits for outstanding replies. */
const CLOSE_TIMEOUT_MS = 1_000;

/**
 * A `Cache` over an `ioredis` client that fails commands instead of queueing them; owns the client.
 * @param name of the server without credentials, for error messages
 */
export function redisCache(redis: Redis, name: string): Cache {
  return new RedisCache(redis, name);
}

class RedisCache implements Cache {
  readonly #redis: Redis;
  readonly #name: string;
  readonly #increments = new Increments((keys, parameters) => inTime(this.#run<string[]>(addToCounters, keys, parameters)));
  readonly #slots = new SlotChanges({
    acquire: (key, limit, lifetimeMs, owners) => inTime(this.#run<number[]>(acquireSlots, [key], [limit, lifetimeMs, ...owners])),
    release: async (key, owners) => inTime(this.#redis.zrem(key, ...owners)),
  });
  #inFlight = 0;
  #closing: Promise<void> | null = null;

  constructor(redis: Redis, name: string) {
    this.#redis = redis;
    this.#name = name;
  }

  async get(key: string): Promise<string | null> {
    const stored = await this.#send(key, (at) => this.#redis.get(at));
    return stored === null ? null : fromRedis(stored);
  }

  async getMany(keys: readonly string[]): Promise<(string | null)[]> {
    const check = () => {
      checkKeys(keys);
      return 0;
    };
    const stored = await this.#send('', () => (keys.length === 0 ? Promise.resolve([]) : this.#redis.mget(keys.map(toRedis))), check);
    return stored.map((text) => (text === null ? null : fromRedis(text)));
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    const check = () => {
      checkValue(value);
      return wholeLifetimeMs(ttlMs);
    };
    await this.#send(key, (at, lifetimeMs) => this.#redis.set(at, toRedis(value), 'PX', lifetimeMs), check);
  }

  async delete(key: string): Promise<void> {
    await this.#send(key, (at) => this.#redis.del(at));
  }

  async increment(key: string, by: number, ttlMs: number): Promise<number> {
    const check = () => {
      checkAddend(by);
      return wholeLifetimeMs(ttlMs);
    };
    return this.#collect(key, this.#increments, (at, lifetimeMs) => this.#increments.add(at, by, lifetimeMs), check);
  }

  async acquireSlot(key: string, owner: string, limit: number, ttlMs: number): Promise<boolean> {
    const check = () => wholeLifetimeMs(ttlMs);
    return this.#collect(key, this.#slots, (at, lifetimeMs) => this.#slots.acquire(at, toRedis(owner), limit, lifetimeMs), check);
  }

  async extendSlots(key: string, owners: readonly string[], limit: number, ttlMs: number): Promise<void> {
    const check = () => wholeLifetimeMs(ttlMs);
    for (let from = 0; from < owners.length; from += MAX_OWNERS) {
      const some = owners.slice(from, from + MAX_OWNERS).map(toRedis);
      await this.#send(key, (at, lifetimeMs) => this.#run<number[]>(acquireSlots, [at], [limit, lifetimeMs, ...some]), check);
    }
  }

  async releaseSlot(key: string, owner: string): Promise<void> {
    await this.#collect(key, this.#slots, (at) => this.#slots.release(at, toRedis(owner)));
  }

  async close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  #send<Answer>(key: string, command: (at: string, lifetimeMs: number) => Promise<Answer>, check?: () => number): Promise<Answer> {
    const timed = (at: string, lifetimeMs: number) => {
      // The library writes each command by itself.
      if (this.#redis.status === 'ready') corkForTick(this.#redis.stream);
      return inTime(command(at, lifetimeMs));
    };
    return this.#limited(key, timed, check);
  }

  /** Leaves with the others of its tick, whose commands have a limit of time. */
  #collect<Answer>(key: string, batch: Batch, add: (at: string, lifetimeMs: number) => Promise<Answer>, check?: () => number): Promise<Answer> {
    const added = (at: string, lifetimeMs: number) => {
      if (batch.isEmpty) this.#atTickEnd(() => batch.flush());
      return add(at, lifetimeMs);
    };
    return this.#limited(key, added, check);
  }

  /** Checks arguments before anything is sent, limits the calls in flight, translates errors. */
  async #limited<Answer>(key: string, call: (at: string, lifetimeMs: number) => Promise<Answer>, check: () => number = () => 0): Promise<Answer> {
    if (this.#closing !== null) throw new SwitchyardError('storage.closed', 'the cache is closed');
    checkKey(key);
    const lifetimeMs = check();
    if (this.#inFlight >= MAX_IN_FLIGHT) throw new SwitchyardError('service.not_ready', `${this.#inFlight} calls wait for the cache already`);
    this.#inFlight += 1;
    try {
      return await call(toRedis(key), lifetimeMs);
    } catch (error) {
      throw this.#translate(key, error);
    } finally {
      this.#inFlight -= 1;
    }
  }

  #atTickEnd(task: () => void): void {
    if (this.#redis.status === 'ready') corkForTick(this.#redis.stream, task);
    else setImmediate(task);
  }

  /** By hash; with the text where Redis has forgotten it, as after a restart. */
  async #run<Answer>(script: Script, keys: string[], parameters: (string | number)[]): Promise<Answer> {
    const answer = await this.#redis.evalsha(script.sha1, keys.length, ...keys, ...parameters).catch((error: unknown) => {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
      return this.#redis.eval(script.text, keys.length, ...keys, ...parameters);
    });
    return answer as Answer;
  }

  /** Only the message is passed on: the library's errors carry the command's arguments, which may be customer text. */
  #translate(key: string, error: unknown): Error {
    const text = error instanceof Error ? error.message : String(error);
    if (/WRONGTYPE|value is not an integer/.test(text)) return new TypeError(`the cache's entry ${key} is of another kind`);
    if (text.includes('would overflow')) return new RangeError(`the counter ${key} can not grow any further`);
    return new SwitchyardError('service.unreachable', `${this.#name} did not answer`, { cause: new Error(text) });
  }

  async #end(): Promise<void> {
    this.#increments.flush();
    this.#slots.flush();
    // QUIT is answered after all outstanding replies.
    if (this.#redis.status === 'ready')
      await within(
        CLOSE_TIMEOUT_MS,
        this.#redis.quit().catch(() => {}),
        () => {},
      );
    if (this.#redis.status !== 'end') this.#redis.disconnect();
  }
}

/** What is collected in a tick. */
interface Batch {
  readonly isEmpty: boolean;
  flush(): void;
}

function inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
  return within(COMMAND_TIMEOUT_MS, answer, timedOut);
}

function timedOut(): never {
  throw new Error(`no reply within ${COMMAND_TIMEOUT_MS} ms`);
}

function wholeLifetimeMs(ttlMs: number): number {
  return Math.min(Math.ceil(lifetimeMsOf(ttlMs)), MAX_LIFETIME_MS);
}
