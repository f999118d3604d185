import { type Row, sqlError } from '../model-rows.ts';

/** What the statements of the ledger do. All true: as in SQL. Each can be left out, as a planted fault. */
export interface LedgerRules {
  /** A generation id that is in the ledger is not inserted again. */
  dedupes: boolean;
  /** Windows count inserted records alone, not repeated ones. */
  countsInserted: boolean;
  /** A record deletes the reservation of its call. */
  settles: boolean;
  /** A reservation lapses only at the given instant. */
  waitsForEnd: boolean;
  /** Interim records of calls that are not in the ledger are found. */
  findsOverdue: boolean;
}

export const ALL_RULES: LedgerRules = { dedupes: true, countsInserted: true, settles: true, waitsForEnd: true, findsOverdue: true };

const DAY_MS = 86_400_000;
/** 1970-01-05 was a Monday. */
const FIRST_MONDAY_MS = 4 * DAY_MS;
const WINDOWS = ['day', 'week', 'month'] as const;
type Window = (typeof WINDOWS)[number];

export interface SpendRow extends Record<Window | 'key_id', string>, Record<`${Window}_nano`, number> {
  total_nano: number;
  reserved_nano: number;
}

export interface ReservationRow {
  call_id: string;
  key_id: string;
  amount_nano: number;
  untilMs: number;
}

export interface LedgerRow {
  generation_id: string;
  key_id: string;
  createdAtMs: number;
  cost_nano: number;
}

export interface InterimRow {
  generation_id: string;
  record: string;
  untilMs: number;
}

interface State {
  spend: Map<string, SpendRow>;
  reservations: Map<string, ReservationRow>;
  /** By generation id; several only without `dedupes`. */
  ledger: Map<string, LedgerRow[]>;
  interims: Map<string, InterimRow>;
}

type Columns = readonly (readonly unknown[])[];
type Execute = (parameters: readonly unknown[], nowMs: number) => Row[];

/** The tables of keys' money and the statements on them, by name. One statement at a time: the database has row locks to the same end. */
export class LedgerTables {
  readonly #rules: LedgerRules;
  readonly #state: State = { spend: new Map(), reservations: new Map(), ledger: new Map(), interims: new Map() };
  /** Whether effects are open, by id. */
  readonly effects = new Map<string, boolean>();
  readonly deadLetters: Row[] = [];
  /** Reservations that lapsed. */
  readonly lapsed: ReservationRow[] = [];
  /** Calls whose reservation was given back, since they were not sent. */
  readonly released = new Set<string>();
  readonly #statements: ReadonlyMap<string, Execute> = new Map<string, Execute>([
    ['begin-spend', ([keys], nowMs) => this.#beginSpend(keys as string[], nowMs)],
    ['reserve-calls', (columns, nowMs) => this.#reserve(columns as Columns, nowMs)],
    ['reserve-together', (parameters, nowMs) => this.#reserveTogether(parameters, nowMs)],
    ['release-calls', ([calls, keys]) => this.#release(calls as string[], keys as string[])],
    ['ledger-write-records', (columns, nowMs) => this.#write(columns as Columns, nowMs)],
    ['ledger-lapse-reservations', ([beforeMs, most], nowMs) => this.#lapse(beforeMs as number, most as number, nowMs)],
    ['interim-write', ([ids, records, validMs], nowMs) => this.#writeInterims(ids as string[], (records as string).split('\n'), nowMs + (validMs as number))],
    ['interim-find', ([id]) => [...this.interims.values()].flatMap(({ generation_id, record }) => (generation_id === id ? [{ record }] : []))],
    ['interim-overdue', ([beforeMs, most], nowMs) => this.#overdue(Math.min(beforeMs as number, nowMs), most as number)],
    ['effect_state', ([id]) => [{ open: this.effects.get(id as string) ?? null }]],
    ['store-dead-letter', ([id, , source, reason]) => this.#storeDeadLetter({ id, source, reason })],
  ]);

  constructor(rules: LedgerRules = ALL_RULES) {
    this.#rules = rules;
  }

  get spend(): ReadonlyMap<string, SpendRow> {
    return this.#state.spend;
  }

  get reservations(): ReadonlyMap<string, ReservationRow> {
    return this.#state.reservations;
  }

  get ledger(): ReadonlyMap<string, readonly LedgerRow[]> {
    return this.#state.ledger;
  }

  get interims(): ReadonlyMap<string, InterimRow> {
    return this.#state.interims;
  }

  /** @throws TypeError for a statement that is not modelled, so that a new one is noticed */
  execute(name: string, parameters: readonly unknown[], nowMs: number): Row[] {
    const execute = this.#statements.get(name);
    if (execute === undefined) throw new TypeError(`the model has no such statement: ${name}`);
    return execute(parameters, nowMs);
  }

  #storeDeadLetter(letter: Row): Row[] {
    if (!this.deadLetters.some(({ id, source }) => id === letter['id'] && source === letter['source'])) this.deadLetters.push(letter);
    return [];
  }

  #beginSpend(keys: readonly string[], nowMs: number): Row[] {
    for (const key of keys) if (!this.spend.has(key)) this.#state.spend.set(key, newSpend(key, nowMs));
    return [];
  }

  #reserve([calls = [], keys = [], amounts = [], limits = [], periods = [], lefts = []]: Columns, nowMs: number): Row[] {
    const asked = calls.map((callId, number) => {
      const row = this.spend.get(keys[number] as string);
      const isRepeated = this.reservations.has(callId as string) || this.ledger.has(callId as string);
      const spent = row === undefined ? 0 : spentIn(row, periods[number] as string, nowMs);
      const used = (row?.reserved_nano ?? 0) + spent;
      return { callId: callId as string, row, isRepeated, spent, used, amount: amounts[number] as number, limit: limits[number] as number, number };
    });
    const sums = new Map<string, number>();
    const outcomes: Row[] = [];
    for (const one of [...asked].sort((left, right) => left.amount - right.amount || left.number - right.number)) {
      const { callId, row, isRepeated, spent, used, amount, limit, number } = one;
      const key = keys[number] as string;
      const sum = (sums.get(key) ?? 0) + (isRepeated ? 0 : amount);
      sums.set(key, sum);
      const fits = isRepeated || (row !== undefined && used < limit && used + sum <= limit);
      const isOccupied = spent < limit && spent + amount <= limit;
      outcomes[number] = { outcome: fits ? 'reserved' : row === undefined ? 'no-row' : isOccupied ? 'occupied' : 'no-capacity' };
      if (!fits || isRepeated || row === undefined || this.reservations.has(callId)) continue;
      this.#state.reservations.set(callId, { call_id: callId, key_id: key, amount_nano: amount, untilMs: nowMs + (lefts[number] as number) });
      row.reserved_nano += amount;
    }
    return outcomes;
  }

  #reserveTogether([keyId, ids, amounts, lefts, sum, limit, period]: readonly unknown[], nowMs: number): Row[] {
    const row = this.spend.get(keyId as string);
    const used = row === undefined ? 0 : row.reserved_nano + spentIn(row, period as string, nowMs);
    const isRepeated = (ids as string[]).some((id) => this.reservations.has(id) || this.ledger.has(id));
    const fits = row !== undefined && used < (limit as number) && used + (sum as number) <= (limit as number) && !isRepeated;
    if (!fits) return [{ fits }];
    if (new Set(ids as string[]).size < (ids as string[]).length) throw sqlError('23505', 'a call is asked twice');
    for (const [index, call_id] of (ids as string[]).entries()) {
      const [amount_nano, leftMs] = [(amounts as number[])[index] as number, (lefts as number[])[index] as number];
      this.#state.reservations.set(call_id, { call_id, key_id: keyId as string, amount_nano, untilMs: nowMs + leftMs });
    }
    row.reserved_nano += sum as number;
    return [{ fits }];
  }

  #release(calls: readonly string[], keys: readonly string[]): Row[] {
    const ended = calls.filter((_, index) => this.spend.has(keys[index] as string));
    for (const { call_id, key_id, amount_nano } of this.#delete(ended)) {
      this.released.add(call_id);
      (this.spend.get(key_id) as SpendRow).reserved_nano -= amount_nano;
    }
    return [];
  }

  #write(columns: Columns, nowMs: number): Row[] {
    const [ids = [], keys = [], createdAts = [], , , , , , costs = [], , reserved = []] = columns;
    const inserted: LedgerRow[] = [];
    const touched = new Set(ids.flatMap((_, index) => ((costs[index] as number) > 0 || reserved[index] === true ? (keys[index] as string) : [])));
    const missing = [...touched].filter((key) => !this.spend.has(key)).sort(compare);
    if (missing.length > 0) return [{ inserted: 0, missing }];
    for (const [index, generation] of ids.entries()) {
      const [generation_id, key_id] = [generation as string, keys[index] as string];
      const row = { generation_id, key_id, createdAtMs: createdAts[index] as number, cost_nano: costs[index] as number };
      const found = this.#state.ledger.get(generation_id) ?? [];
      if (found.length > 0 && this.#rules.dedupes) {
        if (!this.#rules.countsInserted) inserted.push(row);
        continue;
      }
      this.#state.ledger.set(generation_id, [...found, row]);
      inserted.push(row);
    }
    for (const [key, spend] of this.spend) {
      if (!touched.has(key)) continue;
      addSpent(
        spend,
        inserted.filter((row) => row.key_id === key && row.cost_nano > 0),
        nowMs,
      );
    }
    if (this.#rules.settles) {
      const settled = (ids as string[]).filter((id, index) => reserved[index] === true && touched.has(this.reservations.get(id)?.key_id ?? ''));
      for (const { key_id, amount_nano } of this.#delete(settled)) this.#free(key_id, amount_nano);
    }
    return [{ inserted: inserted.length, missing }];
  }

  #lapse(beforeMs: number, most: number, nowMs: number): Row[] {
    const before = this.#rules.waitsForEnd ? Math.min(beforeMs, nowMs) : nowMs + DAY_MS;
    const dead = [...this.reservations.values()].filter(({ untilMs, key_id }) => untilMs < before && this.spend.has(key_id));
    const first = dead.sort((left, right) => left.untilMs - right.untilMs).slice(0, most);
    const freed = new Map<string, { key_id: string; amount_nano: number; reservations: number }>();
    this.lapsed.push(...first);
    for (const { key_id, amount_nano } of this.#delete(first.map(({ call_id }) => call_id))) {
      const sum = freed.get(key_id) ?? { key_id, amount_nano: 0, reservations: 0 };
      freed.set(key_id, { key_id, amount_nano: sum.amount_nano + amount_nano, reservations: sum.reservations + 1 });
      this.#free(key_id, amount_nano);
    }
    return [...freed.values()];
  }

  #writeInterims(ids: readonly string[], records: readonly string[], untilMs: number): Row[] {
    for (const [index, generation_id] of ids.entries()) this.#state.interims.set(generation_id, { generation_id, record: records[index] ?? '', untilMs });
    return [];
  }

  #overdue(beforeMs: number, most: number): Row[] {
    const overdue = [...this.interims.values()].filter(({ untilMs }) => untilMs < beforeMs);
    const first = overdue.sort((left, right) => left.untilMs - right.untilMs || compare(left.generation_id, right.generation_id)).slice(0, most);
    for (const { generation_id } of first) if (this.ledger.has(generation_id)) this.#state.interims.delete(generation_id);
    const left = first.filter(({ generation_id }) => this.interims.has(generation_id) && this.#rules.findsOverdue);
    return left.map(({ generation_id, record }) => ({ generation_id, record })).sort((one, other) => compare(one.generation_id, other.generation_id));
  }

  #delete(calls: readonly string[]): ReservationRow[] {
    const found = [...new Set(calls)].flatMap((call) => this.reservations.get(call) ?? []);
    for (const { call_id } of found) this.#state.reservations.delete(call_id);
    return found;
  }

  #free(key: string, amount: number): void {
    const row = this.spend.get(key);
    if (row !== undefined) row.reserved_nano = Math.max(0, row.reserved_nano - amount);
  }
}

function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Adds the costs of inserted records, all of one key. */
function addSpent(spend: SpendRow, rows: readonly LedgerRow[], nowMs: number): void {
  for (const row of rows) spend.total_nano += row.cost_nano;
  for (const window of WINDOWS) {
    const present = windowOf(window, nowMs);
    const at = rows.map((row) => windowOf(window, Math.min(row.createdAtMs, nowMs)));
    const newest = at.reduce((most, one) => (one > most ? one : most), at[0] ?? present);
    const amount = rows.reduce((sum, row, index) => sum + (at[index] === newest ? row.cost_nano : 0), 0);
    const found = spend[window] > present ? present : spend[window];
    const kept = newest > found ? 0 : spend[`${window}_nano`];
    spend[`${window}_nano`] = kept + (newest < found ? 0 : amount);
    spend[window] = newest > found ? newest : found;
  }
}

function newSpend(key_id: string, nowMs: number): SpendRow {
  const [day, week, month] = [windowOf('day', nowMs), windowOf('week', nowMs), windowOf('month', nowMs)];
  return { key_id, total_nano: 0, day, day_nano: 0, week, week_nano: 0, month, month_nano: 0, reserved_nano: 0 };
}

/** What counts for a limit with the period; '' for none. */
export function spentIn(row: SpendRow, period: string, nowMs: number): number {
  const window = { daily: 'day', weekly: 'week', monthly: 'month' }[period] as Window | undefined;
  if (window === undefined) return row.total_nano;
  return row[window] >= windowOf(window, nowMs) ? row[`${window}_nano`] : 0;
}

/** The first day of the window, as text that sorts. */
function windowOf(window: Window, ms: number): string {
  if (window === 'week') return dayOf(ms - ((ms - FIRST_MONDAY_MS) % (7 * DAY_MS)));
  return window === 'day' ? dayOf(ms) : `${dayOf(ms).slice(0, 7)}-01`;
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** The error of every statement while the database is away. */
export function databaseAway(): Error {
  return sqlError('ECONNREFUSED', 'connect ECONNREFUSED');
}
