import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { inParallel } from '../helpers/in-parallel.ts';
import { casesOfToday } from '../helpers/tier.ts';
import { sendCall } from './billed-call.ts';
import { checkBills, watchLimits } from './billing-audit.ts';
import { type BillingEnvironment, openBillingEnvironment } from './billing-environment.ts';
import { billingFaults } from './billing-faults.ts';
import { beginBillingLoad, untilEnd } from './billing-load.ts';
import { seededRandom } from './seeded-random.ts';

const seed = Number(process.env.CHAOS_SEED ?? 1);

/** Each await inside has a bound of its own, and the machine may be busy. */
const CASE_MS = 400_000;
/** Times of first tokens that a worker must know before it hedges; the workers share them. */
const MEASURED = 40;
const AT_ONCE = 4;
const CALLS_BEFORE = 20;
const CALLS_BEHIND = 20;
/** An execution of a hedged call asks two endpoints. */
const ASKED_EACH = 2;
const CLOSED = { timeoutMs: 60_000 };

const names = ['a router-gateway is killed', 'a router-worker is killed', 'redis is killed'];
const faults = billingFaults.filter(({ name }) => names.includes(name));

let environment: BillingEnvironment;
beforeAll(async () => {
  environment = await openBillingEnvironment(seededRandom(seed));
});
afterAll(() => environment?.close());

describe('while hedges are open', () => {
  it('has the faults that it names', () => {
    expect(faults.map(({ name }) => name).sort()).toEqual([...names].sort());
  });

  for (const fault of casesOfToday(faults)) {
    it(`DESIGN 8: each hedged call is billed once and leaves no request at a provider when ${fault.name}`, { timeout: CASE_MS }, async () => {
      const key = await environment.makeKey(null);
      await inParallel(Array.from({ length: MEASURED }).keys(), AT_ONCE, async () => {
        await sendCall(environment, { key, script: 'prompt', isStream: true });
      });
      const load = await beginBillingLoad(environment, ['late']);
      const watched = watchLimits(environment);
      const outcomes = await untilEnd(load, async () => {
        await load.more(CALLS_BEFORE);
        await fault.inject(environment, load);
        await load.more(CALLS_BEHIND);
      });
      const totals = await checkBills(environment, outcomes, { keys: load.keys });
      await watched();

      const requests = outcomes.map(({ name }) => environment.upstream.calls(name));
      const hedged = requests.filter((calls) => calls.some(({ provider }) => provider === 'west'));
      console.info(`${fault.name}: ${JSON.stringify({ ...totals, hedged: hedged.length })}`);
      expect(hedged.length).toBeGreaterThan(CALLS_BEFORE / 2);
      expect(totals.mostAsked).toBeLessThanOrEqual(ASKED_EACH * (1 + fault.askedAgain));
      // Of the two endpoints of an execution one at most answers to the end.
      for (const calls of hedged) expect(calls.filter(({ leftAtMs }) => leftAtMs === null).length).toBeLessThanOrEqual(Math.ceil(calls.length / ASKED_EACH));
      await eventually(() => requests.flat().every(({ isOpen }) => !isOpen), CLOSED);
      if (!fault.leavesReservations) expect(totals.reservationsLeft).toBe(0);
    });
  }
});
