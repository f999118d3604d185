import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../helpers/eventually.ts';
import { type BilledCall, type Outcome, type Script, sendCall } from './billed-call.ts';
import { type BillingEnvironment, LIMIT_OF_TEN_NANO, type MadeKey } from './billing-environment.ts';

/** Calls under keys with and without a limit, in bursts, while processes and stores end. */
export interface BillingLoad {
  keys: readonly MadeKey[];
  /** Calls that have begun so far. */
  readonly begun: number;
  /** Resolves once so many more have begun. @throws the first failure */
  more(calls: number): Promise<void>;
  /** Begins nothing more and waits for the rest. @throws the first failure, such as a call that hangs */
  end(): Promise<readonly Outcome[]>;
  /** Begins nothing more and does not wait for the rest. */
  abandon(): void;
}

/** Made before the first fault, since making a key needs the database. Each is used until its credit is gone, and for some calls more. */
const KEYS_FOR_TEN = 24;
const CALLS_PER_KEY = 16;
const AMPLE_NANO = 1_000_000_000;
const BURST_EVERY_MS = 300;
/** Few: each is read by a process of its worker. */
const FILE_EVERY = 6;
/** Beyond it a burst begins nothing: while a worker is dead, calls last seconds. */
const MAX_IN_FLIGHT = 120;
const TIMEOUT = { timeoutMs: 60_000 };
const SCRIPTS: readonly Script[] = ['counted', 'uncounted', 'counted', 'broken', 'counted', 'refused', 'counted'];

/** @param scripts what providers do, in turn */
export async function beginBillingLoad(environment: BillingEnvironment, scripts: readonly Script[] = SCRIPTS): Promise<BillingLoad> {
  const make = (limitNano: number | null) => environment.makeKey(limitNano);
  const forTen = await Promise.all(Array.from({ length: KEYS_FOR_TEN }, () => make(LIMIT_OF_TEN_NANO)));
  const [ample, unlimited] = await Promise.all([make(AMPLE_NANO), make(null)]);
  const outcomes: Outcome[] = [];
  const all: Promise<void>[] = [];
  let begun = 0;
  let ofTen = 0;
  let inFlight = 0;
  let failure: unknown;
  const begin = (key: MadeKey) => {
    const script = scripts[begun % scripts.length] ?? 'counted';
    // The worst case of a file is more than a tight key has room for.
    const hasFile = (key === ample || key === unlimited) && begun % FILE_EVERY === 0;
    const call: BilledCall = { key, script, isStream: begun % 2 === 0, isDetached: begun % 5 === 0, hasFile };
    begun += 1;
    inFlight += 1;
    const sent = sendCall(environment, call)
      .then((outcome) => void outcomes.push(outcome))
      .catch((error) => {
        failure ??= error;
      })
      .finally(() => {
        inFlight -= 1;
      });
    all.push(sent);
  };
  const burst = () => {
    for (let index = 0; index < 4; index += 1) {
      const key = forTen[Math.floor(ofTen / CALLS_PER_KEY) % forTen.length];
      if (key !== undefined) begin(key);
      ofTen += 1;
    }
    for (let index = 0; index < 2; index += 1) begin(ample);
    for (let index = 0; index < 3; index += 1) begin(unlimited);
  };
  const stop = new AbortController();
  const bursts = (async () => {
    while (!stop.signal.aborted && failure === undefined) {
      if (inFlight < MAX_IN_FLIGHT) burst();
      await delay(BURST_EVERY_MS, undefined, { signal: stop.signal }).catch(() => {});
    }
  })();
  return {
    keys: [...forTen, ample, unlimited],
    get begun() {
      return begun;
    },
    more: async (calls) => {
      const wanted = begun + calls;
      await eventually(() => failure !== undefined || begun >= wanted, TIMEOUT);
      if (failure !== undefined) throw failure;
    },
    end: async () => {
      stop.abort();
      await bursts;
      await Promise.all(all);
      if (failure !== undefined) throw failure;
      return outcomes;
    },
    abandon: () => stop.abort(),
  };
}

/** Ends the load in any case: one that went on behind a failed case would be in the queue, and in the sums, of the next. */
export async function untilEnd(load: BillingLoad, during: () => Promise<void>): Promise<readonly Outcome[]> {
  try {
    await during();
  } catch (error) {
    load.abandon();
    throw error;
  }
  return load.end();
}
