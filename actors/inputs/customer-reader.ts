import { LRUCache } from 'lru-cache';
import { type Clock, steadyClock } from '#shared/clock.ts';
import type { Documents } from '#shared/config/bundle-body.ts';
import { isGuestOf } from '#shared/contracts/agent/customer.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { within } from '#shared/within.ts';
import { stepVariables } from '../engine/routines/routine-model.ts';
import { staleVariables } from '../engine/variables/stale-variables.ts';
import { noValues, shownNames, type VariableValues, valuesFor } from '../engine/variables/variable-values.ts';
import type { CustomerStore, StoredCustomer } from '../store/port/customer-store.ts';
import type { FetchedValues } from './fetched-values.ts';

/** Of one read: prompts and greetings go out without what is read later. */
const LONGEST_MS = 2_000;
/** For the last look at the database. */
const GRACE_MS = 500;
/** Turns in progress, in a host of many. */
const MAX_TURNS = 10_000;
/** Over all turns, of values as JSON. */
const MAX_CHARACTERS = 16 * 1_024 * 1_024;
/** Longer than a turn and the check after it. */
const KEPT_MS = 600_000;

/** What prompts know of a customer. */
export interface KnownCustomer {
  /** Null for a guest. */
  name: string | null;
  values: VariableValues;
}

export const unknownCustomer: KnownCustomer = { name: null, values: noValues };

interface ReaderDeps {
  store: CustomerStore;
  /** Absent: no value is fetched. */
  fetched?: Pick<FetchedValues, 'of'>;
  /** Of the freshness of values. */
  clock: Clock;
  log: Log;
  /** Absent: 2 s. */
  longestMs?: number;
}

interface SessionCustomer {
  sessionId: string;
  customerId: string;
}

/** Has stale values fetched, by an instant of the steady clock. */
type Refresh = (stored: StoredCustomer, endsAtMs: number) => Promise<StoredCustomer | null>;

/** Reads names of customers and values of variables, which gateways write. */
export class CustomerReader {
  readonly #deps: ReaderDeps;
  readonly #reading = new Map<string, Promise<KnownCustomer>>();
  readonly #known = new LRUCache<string, KnownCustomer>({ max: MAX_TURNS, maxSize: MAX_CHARACTERS, sizeCalculation: sizeOf, ttl: KEPT_MS });
  readonly #names = new WeakMap<Documents, string[]>();

  constructor(deps: ReaderDeps) {
    this.#deps = deps;
  }

  /** As it was for the turn's first prompt of this host: its prompts do not differ in it (rule 93). */
  async ofTurn(turnId: string, customer: SessionCustomer & { bundleHash: string }, documents: Documents): Promise<KnownCustomer> {
    const known = this.#known.get(turnId) ?? this.#reading.get(turnId);
    if (known !== undefined) return await known;
    const reading = this.#read(customer, this.#namesOf(documents), this.#refreshFor(turnId, customer, documents)).then((found) => {
      if (found !== unknownCustomer) this.#known.set(turnId, found);
      return found;
    });
    this.#reading.set(turnId, reading);
    try {
      return await reading;
    } finally {
      this.#reading.delete(turnId);
    }
  }

  /** Without a name and values when the read fails or takes too long. @param names of the variables that are needed */
  async read(customer: SessionCustomer, names: readonly string[]): Promise<KnownCustomer> {
    return this.#read(customer, names, async () => null);
  }

  async #read({ sessionId, customerId }: SessionCustomer, names: readonly string[], refresh: Refresh): Promise<KnownCustomer> {
    const isGuest = isGuestOf(sessionId, customerId);
    if (isGuest && names.length === 0) return unknownCustomer;
    const { store, log, longestMs = LONGEST_MS } = this.#deps;
    const endsAtMs = steadyClock.nowMs() + longestMs;
    try {
      const stored = await within(longestMs, store.read(customerId, names), () => {
        throw new Error('the customer was not read in time');
      });
      const found = (await refresh(stored, endsAtMs)) ?? stored;
      return { name: isGuest ? null : found.name, values: valuesFor(customerId, found) };
    } catch (error) {
      log.warn({ err: error, session_id: sessionId }, 'the name and the variables of a customer could not be read; prompts have the defaults');
      return unknownCustomer;
    }
  }

  #refreshFor(turnId: string, { sessionId, customerId, bundleHash }: SessionCustomer & { bundleHash: string }, documents: Documents): Refresh {
    const { fetched, store, clock } = this.#deps;
    const names = this.#namesOf(documents);
    return async ({ values }, endsAtMs) => {
      const stale = fetched === undefined ? [] : staleVariables(documents, names, { customerId, values, nowMs: clock.nowMs() });
      if (fetched === undefined || stale.length === 0) return null;
      const requests = stale.map((variable) => ({ ...variable, turnId, sessionId, customerId, bundleHash }));
      const waitMs = Math.max(0, endsAtMs - steadyClock.nowMs());
      const found = fetched.of(requests, () => store.read(customerId, names), waitMs);
      // A database that hangs meanwhile costs the new values, not the old ones.
      return await within(waitMs + GRACE_MS, found, () => null).catch(() => null);
    };
  }

  #namesOf(documents: Documents): string[] {
    const known = this.#names.get(documents);
    if (known !== undefined) return known;
    const names = [...new Set([...shownNames(documents), ...stepVariables(documents)])];
    this.#names.set(documents, names);
    return names;
  }
}

function sizeOf({ name, values }: KnownCustomer): number {
  let size = 256 + (name?.length ?? 0);
  for (const [key, value] of values) size += key.length + (typeof value === 'string' ? value : JSON.stringify(value ?? null)).length;
  return size;
}
