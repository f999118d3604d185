import { describe, expect, it } from 'vitest';
import { currentSpend, type KeySpend, remainingNano, windowsAt } from './spend-windows.ts';

describe('the windows of an instant', () => {
  it.each([
    ['a Monday', '2026-11-23T00:00:00.000Z', { day: '2026-11-23', week: '2026-11-23', month: '2026-11-01' }],
    ['the last instant of a Sunday', '2026-11-22T23:59:59.999Z', { day: '2026-11-22', week: '2026-11-16', month: '2026-11-01' }],
    ['the first instant of a month', '2026-03-01T00:00:00.000Z', { day: '2026-03-01', week: '2026-02-23', month: '2026-03-01' }],
    ['the last instant of a month', '2026-02-28T23:59:59.999Z', { day: '2026-02-28', week: '2026-02-23', month: '2026-02-01' }],
    ['a week over the end of a year', '2027-01-01T12:00:00.000Z', { day: '2027-01-01', week: '2026-12-28', month: '2027-01-01' }],
  ])('are of UTC: %s', (_, at, windows) => {
    expect(windowsAt(Date.parse(at))).toEqual(windows);
  });
});

describe('what a key has spent', () => {
  const spend: KeySpend = {
    totalNano: 100,
    day: '2026-11-22',
    dayNano: 30,
    week: '2026-11-16',
    weekNano: 40,
    month: '2026-11-01',
    monthNano: 60,
    reservedNano: 5,
  };

  it.each([
    ['in the same windows', '2026-11-22T23:59:59.999Z', { dayNano: 30, weekNano: 40, monthNano: 60 }],
    ['after the end of the day and of the week', '2026-11-23T00:00:00.000Z', { dayNano: 0, weekNano: 0, monthNano: 60 }],
    ['after the end of the month', '2026-12-01T00:00:00.000Z', { dayNano: 0, weekNano: 0, monthNano: 0 }],
    ['by a clock that jumped back over the end of the day', '2026-11-21T23:00:00.000Z', { dayNano: 30, weekNano: 40, monthNano: 60 }],
  ])('counts windows that have passed as 0: %s', (_, at, windows) => {
    expect(currentSpend(spend, windowsAt(Date.parse(at)))).toEqual({ totalNano: 100, reservedNano: 5, ...windows });
  });

  it('is nothing without a row', () => {
    expect(currentSpend(null, windowsAt(0))).toEqual({ totalNano: 0, dayNano: 0, weekNano: 0, monthNano: 0, reservedNano: 0 });
  });

  it.each([
    [null, 195],
    ['daily', 265],
    ['weekly', 255],
    ['monthly', 235],
  ] as const)('leaves the limit less the spending since the reset %s and less the reservations', (limitReset, remaining) => {
    const now = currentSpend(spend, windowsAt(Date.parse('2026-11-22T12:00:00Z')));

    expect(remainingNano({ limitNano: 300, limitReset }, now)).toBe(remaining);
  });

  it.each([
    ['never less than 0', 50, 0],
    ['nothing of a limit of 0', 0, 0],
    ['null without a limit', null, null],
  ])('leaves %s', (_, limitNano, remaining) => {
    expect(remainingNano({ limitNano, limitReset: null }, currentSpend(spend, windowsAt(0)))).toBe(remaining);
  });
});
