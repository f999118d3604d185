import { LRUCache } from 'lru-cache';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Answer } from '#shared/surfaces/answer.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { within } from '#shared/within.ts';
import type { Candidate } from './candidates.ts';
import type { Conversation } from './conversation.ts';
import type { Health } from './health/health.ts';

/** Since the last success. Caches of providers live for some minutes. */
const STICKY_MS = 600_000;
/** Of this worker. What it forgets it deletes from the cache, which so has at most as many of each worker. */
const MAX_CONVERSATIONS = 10_000;
/** A call does better at another endpoint than later. */
const READ_LIMIT_MS = 50;
/** After a failure, before the cache is read again. */
const AWAY_MS = 1_000;

interface StickyDeps {
  /** Null: each worker knows its own conversations. */
  cache: Cache | null;
  health: Pick<Health, 'hasSticky' | 'noteSticky'>;
  clock: Clock;
  log: Log;
}

interface Entry {
  endpoint: string;
  untilMs: number;
}

/**
 * Which endpoint served a conversation last, for the sake of its prompt cache. Entries are shared through the cache. A conversation without a session is looked
 * up there only when some worker has reported that it has stored one for an endpoint of the call's models: plain calls wait for nothing.
 */
export class StickyEndpoints {
  readonly #deps: StickyDeps;
  readonly #own: LRUCache<string, Entry>;
  #awayUntilMs = Number.NEGATIVE_INFINITY;
  #isAway = false;

  constructor(deps: StickyDeps) {
    this.#deps = deps;
    this.#own = new LRUCache({
      max: MAX_CONVERSATIONS,
      dispose: (_, key, reason) => {
        if (reason === 'evict') this.#deps.cache?.delete(nameOf(key)).catch(() => {});
      },
    });
  }

  /** `<model id>@<tag>`; null: none is known. A promise only for a call that may have one; it never rejects. */
  of(conversation: Conversation): string | null | Promise<string | null> {
    const { cache, health } = this.#deps;
    if (!conversation.hasSession && !health.hasSticky(conversation.endpoints)) return null;
    const { key } = conversation;
    if (cache === null || this.#deps.clock.nowMs() < this.#awayUntilMs) return this.#ownOf(key);
    const late = () => {
      throw new SwitchyardError('service.no_answer', 'the cache did not answer in time');
    };
    return within(READ_LIMIT_MS, cache.get(nameOf(key)), late).then(
      (endpoint) => {
        this.#isAway = false;
        return endpoint ?? this.#ownOf(key);
      },
      (error: unknown) => {
        this.#failed(error);
        return this.#ownOf(key);
      },
    );
  }

  /** After each success. Without a session the endpoint must have read the prompt from a cache, at a lower price. */
  served(conversation: Conversation, candidate: Candidate, answer: Answer): void {
    const { cache, health, clock } = this.#deps;
    if (!conversation.hasSession) {
      if ((answer.usage?.cachedTokens ?? 0) === 0 || !isCachedCheaper(candidate)) return;
      health.noteSticky(candidate);
    }
    const { key } = conversation;
    this.#own.set(key, { endpoint: candidate.id, untilMs: clock.nowMs() + STICKY_MS });
    if (cache === null || clock.nowMs() < this.#awayUntilMs) return;
    cache.set(nameOf(key), candidate.id, STICKY_MS).catch((error: unknown) => this.#failed(error));
  }

  #ownOf(key: string): string | null {
    const entry = this.#own.get(key);
    return entry === undefined || entry.untilMs <= this.#deps.clock.nowMs() ? null : entry.endpoint;
  }

  #failed(error: unknown): void {
    if (!this.#isAway) this.#deps.log.warn({ err: error }, 'the cache is away or slow: conversations stay at their endpoints as far as this worker knows them');
    this.#isAway = true;
    this.#awayUntilMs = this.#deps.clock.nowMs() + AWAY_MS;
  }
}

function nameOf(key: string): string {
  return `sticky:${key}`;
}

function isCachedCheaper({ endpoint: { prices } }: Candidate): boolean {
  return prices?.cached_prompt !== undefined && Number(prices.cached_prompt) < Number(prices.prompt);
}
