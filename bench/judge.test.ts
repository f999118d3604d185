import { describe, expect, it } from 'vitest';
import { judge, worst } from './judge.mjs';

const cost = { what: '', unit: 's', value: 2, against: 'portkey', baseline: 10, bar: 0.25, aim: 0.15, sense: 'at most' } as const;
const speed = { ...cost, value: 50, bar: 4, aim: 6, sense: 'at least' } as const;

describe('a verdict', () => {
  it('is none where something was not measured', () => {
    expect(judge({ ...cost, value: null }).verdict).toBe('unknown');
    expect(judge({ ...cost, baseline: null }).verdict).toBe('unknown');
  });

  it('is none against a baseline of nothing or less, which noise can bring', () => {
    expect(judge({ ...cost, baseline: 0 }).verdict).toBe('unknown');
    expect(judge({ ...cost, baseline: -0.1 }).verdict).toBe('unknown');
  });

  it('has the factor by which a bar is missed, in both senses', () => {
    expect(judge({ ...cost, value: 5 })).toEqual({ ratio: 0.5, verdict: 'miss', missedBy: 2 });
    expect(judge({ ...speed, value: 20 })).toEqual({ ratio: 2, verdict: 'miss', missedBy: 2 });
  });

  it('distinguishes the bar from the aim', () => {
    expect(judge(cost).verdict).toBe('bar');
    expect(judge({ ...cost, value: 1.5 }).verdict).toBe('aim');
    expect(judge(speed).verdict).toBe('bar');
    expect(judge({ ...speed, value: 60 }).verdict).toBe('aim');
  });

  it('compares the value itself where there is no baseline', () => {
    expect(judge({ ...cost, against: null, baseline: null, value: 1, bar: 0, aim: null })).toEqual({ ratio: null, verdict: 'miss', missedBy: null });
    expect(judge({ ...cost, against: null, baseline: null, value: 0, bar: 0, aim: null }).verdict).toBe('aim');
  });

  it('of a row is that of its worst figure', () => {
    expect(worst(['aim', 'bar', 'aim'])).toBe('bar');
    expect(worst(['aim', 'miss', 'bar'])).toBe('miss');
    expect(worst(['miss', 'unknown'])).toBe('unknown');
    expect(worst([])).toBe('unknown');
  });
});
