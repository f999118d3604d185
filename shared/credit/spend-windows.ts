import type { CallerKey } from '../keys/caller-key.ts';

const DAY_MS = 86_400_000;

/** First days, as `2026-01-31`, of the UTC day, of the week from Monday to Sunday and of the calendar month of an instant. */
export interface SpendWindows {
  day: string;
  week: string;
  month: string;
}

export function windowsAt(atMs: number): SpendWindows {
  const day = dateOf(atMs);
  // Sunday is 0.
  const sinceMonday = (new Date(atMs).getUTCDay() + 6) % 7;
  return { day, week: dateOf(atMs - sinceMonday * DAY_MS), month: `${day.slice(0, 7)}-01` };
}

function dateOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10);
}

/** A row of `key_spend`. Amounts are billionths of a US dollar. */
export interface KeySpend extends SpendWindows {
  totalNano: number;
  dayNano: number;
  weekNano: number;
  monthNano: number;
  reservedNano: number;
}

export interface CurrentSpend {
  totalNano: number;
  dayNano: number;
  weekNano: number;
  monthNano: number;
  reservedNano: number;
}

/** A window that has passed counts as 0. One that begins later was written by a process whose clock is ahead, and counts. @param spend null: nothing yet */
export function currentSpend(spend: KeySpend | null, now: SpendWindows): CurrentSpend {
  if (spend === null) return { totalNano: 0, dayNano: 0, weekNano: 0, monthNano: 0, reservedNano: 0 };
  return {
    totalNano: spend.totalNano,
    dayNano: spend.day >= now.day ? spend.dayNano : 0,
    weekNano: spend.week >= now.week ? spend.weekNano : 0,
    monthNano: spend.month >= now.month ? spend.monthNano : 0,
    reservedNano: spend.reservedNano,
  };
}

/** What a key may still reserve, at least 0; null: it has no limit. */
export function remainingNano({ limitNano, limitReset }: Pick<CallerKey, 'limitNano' | 'limitReset'>, spend: CurrentSpend): number | null {
  if (limitNano === null) return null;
  return Math.max(0, limitNano - spentSinceReset(limitReset, spend) - spend.reservedNano);
}

function spentSinceReset(limitReset: CallerKey['limitReset'], { totalNano, dayNano, weekNano, monthNano }: CurrentSpend): number {
  switch (limitReset) {
    case 'daily':
      return dayNano;
    case 'weekly':
      return weekNano;
    case 'monthly':
      return monthNano;
    case null:
      return totalNano;
  }
}
