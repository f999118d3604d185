import { LRUCache } from 'lru-cache';
import { type Given, livingOf } from '../config/living.ts';
import type { Queryable } from '../storage/database.ts';
import type { Log } from '../telemetry/log.ts';
import type { CallerKey, KeyDirectory } from './caller-key.ts';
import { KeyLookUps, type KeyLookUpsDeps } from './key-look-ups.ts';
import { readKeyRows } from './key-rows.ts';

/** Bounds how long a change is not seen when its notice is lost. */
const FRESH_MS = 10_000;
/** A wrong key that is sent again and again costs a look-up a second. */
const UNKNOWN_MS = 1_000;
/** Of each kind; some 5 MB. */
const MAX_CACHED = 10_000;

interface CachedRow {
  key: CallerKey;
  /** Monotonic. */
  freshUntilMs: number;
}

interface Deps {
  /** By hash. */
  fileKeys: Given<ReadonlyMap<string, CallerKey>>;
  /** Null: the keys of the file alone. */
  database: Queryable | null;
  log: Log;
  /** Monotonic; for tests. */
  nowMs?: () => number;
  limits?: Pick<KeyLookUpsDeps, 'maxWaiting' | 'timeoutMs'>;
}

/** `forget` is called when a key has changed: it is looked up again at its next use. */
export interface OpenKeyDirectory extends KeyDirectory {
  forget(hash: string): void;
}

/** Keys of the file as it is now, then rows, cached for 10 s, and for as long as the database is away (ADR 50). */
export function openKeyDirectory({ fileKeys: given, database, log, nowMs = () => performance.now(), limits = {} }: Deps): OpenKeyDirectory {
  const fileKeys = livingOf(given);
  if (database === null) return { find: (hash) => fileKeys.current().get(hash) ?? null, forget: () => {} };
  const rows = new LRUCache<string, CachedRow>({ max: MAX_CACHED });
  /** Apart from the rows, so that a flood of wrong keys displaces none. */
  const unknown = new LRUCache<string, { untilMs: number }>({ max: MAX_CACHED });
  const lookUps = new KeyLookUps({ read: (hashes) => readKeyRows(database, hashes), log, nowMs, ...limits });

  async function lookUp(hash: string): Promise<CallerKey | null> {
    const { key, isCurrent } = await lookUps.find(hash);
    if (!isCurrent) return key;
    if (key === null) {
      rows.delete(hash);
      unknown.set(hash, { untilMs: nowMs() + UNKNOWN_MS });
    } else rows.set(hash, { key, freshUntilMs: nowMs() + FRESH_MS });
    return key;
  }

  /** While the database is away the row is served as it is, and a look-up behind the request notices the database's return. */
  function expired(hash: string, { key }: CachedRow): CallerKey | Promise<CallerKey | null> {
    if (!lookUps.isAway) {
      return lookUp(hash).catch((error: unknown) => {
        if (lookUps.isAway && rows.has(hash)) return key;
        throw error;
      });
    }
    if (lookUps.mayTry) lookUp(hash).catch(() => {});
    return key;
  }

  return {
    find(hash) {
      const ofFile = fileKeys.current().get(hash);
      if (ofFile !== undefined) return ofFile;
      const row = rows.get(hash);
      const atMs = nowMs();
      if (row !== undefined) return atMs < row.freshUntilMs ? row.key : expired(hash, row);
      return atMs < (unknown.get(hash)?.untilMs ?? 0) ? null : lookUp(hash);
    },
    forget(hash) {
      rows.delete(hash);
      unknown.delete(hash);
      lookUps.outdate(hash);
    },
  };
}
