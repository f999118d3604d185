import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inParallel } from '../helpers/in-parallel.ts';
import { casesOfToday } from '../helpers/tier.ts';
import { type Outcome, sendCall } from './billed-call.ts';
import { checkBills, watchLimits } from './billing-audit.ts';
import { type BillingEnvironment, COST_NANO, LIMIT_OF_TEN_NANO, openBillingEnvironment } from './billing-environment.ts';
import { billingFaults } from './billing-faults.ts';
import { beginBillingLoad, untilEnd } from './billing-load.ts';
import { seededRandom } from './seeded-random.ts';

const seed = Number(process.env.CHAOS_SEED ?? 1);

/** Each await inside has a bound of its own, and the machine may be busy. */
const CASE_MS = 400_000;
const CALLS_BEFORE = 30;
const CALLS_BEHIND = 30;
const UNAVAILABLE = 503;
const RETRY_AFTER_MS = 1_000;

let environment: BillingEnvironment;

beforeAll(async () => {
  environment = await openBillingEnvironment(seededRandom(seed));
});
afterAll(() => environment?.close());

describe('a key with a limit', () => {
  it('DESIGN 8: with room for 10 calls answers 10 of 1,000 that come at once, and the others with 402', async () => {
    const key = await environment.makeKey(LIMIT_OF_TEN_NANO);
    const watched = watchLimits(environment);
    const outcomes: Outcome[] = [];
    const CALLS = 1_000;
    const send = async (index: number): Promise<void> => {
      const outcome = await sendCall(environment, { key, script: 'counted', isStream: index % 2 === 0 });
      outcomes.push(outcome);
      if (outcome.status !== UNAVAILABLE) return;
      // Credit can not be checked when the database has not answered for 3 s, as on a busy machine. Clients retry then, after the time of `Retry-After`.
      await delay(RETRY_AFTER_MS);
      await send(index);
    };
    await inParallel(Array.from({ length: CALLS }).keys(), CALLS, send);
    const looks = await watched();

    const totals = await checkBills(environment, outcomes, { keys: [key] });
    console.info(`1,000 calls at once: ${JSON.stringify({ ...totals, looks })}`);
    expect(outcomes.filter(({ status }) => status === 200).length).toBe(10);
    expect(totals).toMatchObject({ asked: 10, rows: 10, refused: 990, reservationsLeft: 0, spentNano: 10 * COST_NANO });
    expect(totals.calls).toBe(CALLS + totals.unavailable);
  });
});

describe('under a load of calls with and without a limit', () => {
  for (const fault of casesOfToday(billingFaults)) {
    it(`DESIGN 8: each call has one row in the ledger and no reservation is left when ${fault.name}`, { timeout: CASE_MS }, async () => {
      const load = await beginBillingLoad(environment);
      const watched = watchLimits(environment);
      const outcomes = await untilEnd(load, async () => {
        await load.more(CALLS_BEFORE);
        await fault.inject(environment, load);
        await load.more(CALLS_BEHIND);
      });
      const totals = await checkBills(environment, outcomes, { keys: load.keys, leavesUnbilled: fault.leavesUnbilled, losesFrames: fault.losesFrames });
      const looks = await watched();

      console.info(`${fault.name}: ${JSON.stringify({ ...totals, looks })}`);
      expect(totals.mostAsked).toBeLessThanOrEqual(1 + fault.askedAgain);
      if (!fault.leavesReservations) expect(totals.reservationsLeft).toBe(0);
    });
  }
});
