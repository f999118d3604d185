import { hash } from 'node:crypto';

/** A caller's key, of the router's file or a row of `router_keys`. Never its secret. */
export interface CallerKey {
  /** As in calls, logs and the ledger: the file's id, or `key_<ulid>` in lower case. */
  id: string;
  /** SHA-256 of the secret, in lower-case hex. */
  hash: string;
  /** For people: the name in the file, or the masked secret. */
  label: string;
  /** A management key reaches the routes of management, and no model. */
  isManagement: boolean;
  disabled: boolean;
  /** Null: never. */
  expiresAtMs: number | null;
  /** Made by an OAuth flow. */
  isOauth: boolean;
  /** Billionths of a US dollar; null: no limit. */
  limitNano: number | null;
  /** What the limit applies to, in UTC; null: all time. */
  limitReset: 'daily' | 'weekly' | 'monthly' | null;
  /** Null: no limit. */
  rates: { requestsPerMinute: number | null; tokensPerMinute: number | null; callsAtOnce: number | null };
}

/** The keys of a deployment, by their hash. */
export interface KeyDirectory {
  /**
   * A promise only for a look-up in the database. Disabled and expired keys are found, too.
   * @returns null when there is no such key
   * @throws, or rejects with, `service.not_ready` for a key that is not cached while the database is unreachable; `service.overloaded` while too many
   * look-ups wait
   */
  find(hash: string): CallerKey | null | Promise<CallerKey | null>;
}

export type KeyRefusal = 'disabled' | 'expired' | 'oauth-expired';

/** Why the key is not accepted at the time; null: it is. */
export function refusalOf({ disabled, expiresAtMs, isOauth }: CallerKey, nowMs: number): KeyRefusal | null {
  if (disabled) return 'disabled';
  if (expiresAtMs === null || nowMs < expiresAtMs) return null;
  return isOauth ? 'oauth-expired' : 'expired';
}

/** As in `CallerKey.hash`. */
export function hashOfSecret(secret: string): string {
  return hash('sha256', secret);
}
