import { describe, expect, it } from 'vitest';
import { Breaker, outageLimits, refusalLimits } from './breaker.ts';

const limits = { failures: 3, openMs: 15_000, trialMs: 10_000 };

/** Each step is an attempt that begins and ends at one time, or only begins. */
type Step = [atMs: number, what: 'fail' | 'succeed' | 'begin' | 'release', beganAtMs?: number];

function behind(steps: readonly Step[]) {
  const breaker = new Breaker(limits);
  const changes: unknown[] = [];
  let isTrial = false;
  for (const [atMs, what, beganAtMs = atMs] of steps) {
    if (what === 'begin') isTrial = breaker.begin(atMs);
    else if (what === 'release') breaker.release(isTrial);
    else changes.push(breaker[what](beganAtMs, atMs));
  }
  return { breaker, changes: changes.filter((change) => change !== null) };
}

const failures = (from: number): Step[] => [
  [from, 'fail'],
  [from + 1, 'fail'],
  [from + 2, 'fail'],
];

describe('a breaker', () => {
  it.each<[string, Step[], number, 'closed' | 'open' | 'half-open', boolean]>([
    ['is closed at first', [], 0, 'closed', false],
    ['stays closed after two failures', failures(0).slice(1), 10, 'closed', false],
    ['opens after three in a row', failures(0), 10, 'open', true],
    [
      'stays closed when a success came between',
      [
        [0, 'fail'],
        [1, 'fail'],
        [2, 'succeed'],
        [3, 'fail'],
        [4, 'fail'],
      ],
      10,
      'closed',
      false,
    ],
    ['is open to the last millisecond', failures(0), 15_001, 'open', true],
    ['is half-open when its time is over, and takes a trial', failures(0), 15_002, 'half-open', false],
    ['takes no second trial beside the first', [...failures(0), [15_002, 'begin']], 25_001, 'half-open', true],
    ['takes another trial when the first takes too long', [...failures(0), [15_002, 'begin']], 25_002, 'half-open', false],
    ['takes another trial when the first said nothing', [...failures(0), [15_002, 'begin'], [15_003, 'release']], 15_003, 'half-open', false],
    ['closes with the success of a trial', [...failures(0), [15_002, 'begin'], [15_003, 'succeed', 15_002]], 15_003, 'closed', false],
    ['opens again with the failure of a trial', [...failures(0), [15_002, 'begin'], [15_003, 'fail', 15_002]], 30_002, 'open', true],
    ['takes a trial again after that', [...failures(0), [15_002, 'begin'], [15_003, 'fail', 15_002]], 30_003, 'half-open', false],
    ['does not close with an attempt that began before it opened', [...failures(5), [10, 'succeed', 0]], 10, 'open', true],
    ['closes with an attempt that began while it was open, for lack of another endpoint', [...failures(0), [10, 'succeed', 5]], 10, 'closed', false],
    ['is not extended by failures of attempts that were made nevertheless', [...failures(0), [10_000, 'fail']], 15_002, 'half-open', false],
    [
      'does not open again with failures from before it closed',
      [...failures(0), [9, 'succeed', 5], [10, 'fail', 6], [11, 'fail', 6], [12, 'fail', 6]],
      12,
      'closed',
      false,
    ],
  ])('%s', (_, steps, nowMs, state, isOpen) => {
    const { breaker } = behind(steps);
    expect({ state: breaker.stateAt(nowMs), isOpen: breaker.isOpenAt(nowMs) }).toEqual({ state, isOpen });
  });

  it('reports one opening and one closing per outage, however many trials fail', () => {
    const trials: Step[] = [15_002, 30_003, 45_004].flatMap((atMs): Step[] => [
      [atMs, 'begin'],
      [atMs, 'fail'],
    ]);
    expect(behind([...failures(0), ...trials, [60_005, 'begin'], [60_005, 'succeed'], [60_006, 'succeed']]).changes).toEqual(['opened', 'closed']);
  });

  it('lets at most ten attempts of an upstream fail that is down for 40 s', () => {
    expect(outageLimits.failures + Math.ceil(40_000 / outageLimits.openMs)).toBeLessThanOrEqual(10);
    expect(outageLimits.openMs + outageLimits.trialMs).toBeLessThan(35_000);
    expect(refusalLimits.failures).toBeGreaterThan(1);
  });
});
