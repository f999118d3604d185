import { setImmediate as nextRound } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { LoopBudget } from './loop-budget.ts';

const BURST = 512;

/** A budget with a fake clock that has admitted a burst in this tick. */
function budgetAfterBurst() {
  const clock = { nowMs: 0 };
  const budget = new LoopBudget(() => clock.nowMs);
  const admitted = Array.from({ length: BURST }, () => budget.admits()).filter(Boolean).length;
  return { budget, clock, admitted };
}

describe('LoopBudget', () => {
  it('refuses what comes late in a long tick, until it is over', async () => {
    const { budget, clock } = budgetAfterBurst();
    clock.nowMs = 1_001;
    const late = [budget.admits(), budget.admits()];
    await nextRound();

    expect(late).toEqual([false, false]);
    expect(budget.admits()).toBe(true);
  });

  it('admits a burst, however long it takes', () => {
    const clock = { nowMs: 0 };
    const budget = new LoopBudget(() => clock.nowMs);

    const admitted = Array.from({ length: BURST + 1 }, () => {
      clock.nowMs += 1_001;
      return budget.admits();
    });

    expect(admitted.indexOf(false)).toBe(BURST);
  });

  it('admits what comes within the time, however much it is', () => {
    const { budget, clock, admitted } = budgetAfterBurst();
    clock.nowMs = 1_000;

    expect(admitted).toBe(BURST);
    expect(Array.from({ length: 10_000 }, () => budget.admits())).not.toContain(false);
  });
});
