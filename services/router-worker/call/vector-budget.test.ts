import { expect, it } from 'vitest';
import { VectorBudget } from './vector-budget.ts';

it('refuses what does not fit beside others, and takes it once they have left', () => {
  const budget = new VectorBudget(100);
  const leave = budget.enter(60);

  expect(() => budget.enter(41)).toThrow(expect.objectContaining({ code: 'router.provider_overloaded', details: { retryAfterMs: 1_000 } }));
  const leaveToo = budget.enter(40);
  leave();
  leaveToo();
  expect(() => budget.enter(100)).not.toThrow();
});

it('takes the largest call of all alone', () => {
  expect(() => new VectorBudget(100).enter(101)).not.toThrow();
});
