import { describe, expect, it } from 'vitest';
import { ItemBudget } from './item-budget.ts';

describe('ItemBudget', () => {
  it('reserves no more than its limit, and again what was released', () => {
    const budget = new ItemBudget(100);
    const leave = budget.acquire(60);
    budget.acquire(40);
    expect(budget.acquire(1)).toBeNull();
    leave?.();
    expect(budget.acquire(61)).toBeNull();
    expect(budget.acquire(60)).not.toBeNull();
  });

  it('accepts one body of any size when it holds no other', () => {
    const budget = new ItemBudget(100);
    const leave = budget.acquire(1_000);
    expect(leave).not.toBeNull();
    expect(budget.acquire(1)).toBeNull();
    leave?.();
    expect(budget.acquire(1)).not.toBeNull();
  });
});
