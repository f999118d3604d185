import { expect, it } from 'vitest';
import { countdown } from './countdown.ts';

it('counts from its first read, and never below zero', () => {
  let nowMs = 1_000;
  const leftMs = countdown(100, () => nowMs);
  nowMs = 5_000;

  expect(leftMs()).toBe(100);
  nowMs += 60;
  expect(leftMs()).toBe(40);
  nowMs += 60;
  expect(leftMs()).toBe(0);
});
