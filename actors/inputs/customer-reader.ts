import { LRUCache } from 'lru-cache';
import type { Documents } from '#shared/config/bundle-body.ts';
import { isGuestOf } from '#shared/contracts/agent/customer.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { within } from '#shared/within.ts';
import { stepVariables } from '../engine/routines/routine-model.ts';
import { noValues, shownNames, type VariableValues, valuesFor } from '../engine/variables/variable-values.ts';
import type { CustomerStore } from '../store/port/customer-store.ts';

/** Of one read: prompts and greetings go out without what is read later. */
const LONGEST_MS = 2_000;
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
  log: Log;
  /** Absent: 2 s. */
  longestMs?: number;
}

interface SessionCustomer {
  sessionId: string;
  customerId: string;
}

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
  async ofTurn(turnId: string, customer: SessionCustomer, documents: Documents): Promise<KnownCustomer> {
    const known = this.#known.get(turnId) ?? this.#reading.get(turnId);
    if (known !== undefined) return await known;
    const reading = this.read(customer, this.#namesOf(documents)).then((found) => {
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
  async read({ sessionId, customerId }: SessionCustomer, names: readonly string[]): Promise<KnownCustomer> {
    const isGuest = isGuestOf(sessionId, customerId);
    if (isGuest && names.length === 0) return unknownCustomer;
    const { store, log, longestMs = LONGEST_MS } = this.#deps;
    try {
      const found = await within(longestMs, store.read(customerId, names), () => {
        throw new Error('the customer was not read in time');
      });
      return { name: isGuest ? null : found.name, values: valuesFor(customerId, found) };
    } catch (error) {
      log.warn({ err: error, session_id: sessionId }, 'the name and the variables of a customer could not be read; prompts have the defaults');
      return unknownCustomer;
    }
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
