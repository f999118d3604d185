import { expect, it } from 'vitest';
import { hasPassed, problemOfCron } from './cron.ts';

const at = (time: string) => Date.parse(`2026-03-01T${time}Z`);

it.each([
  ['0 * * * *', '10:30:00', '10:59:59', false],
  ['0 * * * *', '10:30:00', '11:00:00', true],
  ['0 * * * *', '11:00:00', '11:00:01', false],
  ['0 0 31 2 *', '10:30:00', '11:00:00', false],
  ['30 9 * * SUN', '09:00:00', '09:31:00', true],
])('%s has passed between %s and %s: %s', (rule, since, now, expected) => {
  expect(hasPassed(rule, at(since), at(now))).toBe(expected);
});

it('names what is wrong with a rule', () => {
  expect(problemOfCron('0 * * * *')).toBeNull();
  expect(problemOfCron('99 * * * *')).toMatch(/minute/);
});
