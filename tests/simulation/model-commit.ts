import { rowSets } from '../../actors/store/sql/row-sets.ts';
import { list, type ModelTables, type Row, sqlError } from './model-rows.ts';

/** The conditions of the fence that are checked: all, unless a test plants a fault. */
export interface Fence {
  owner: boolean;
  epoch: boolean;
  commitNo: boolean;
}

const FENCE_PARAMETERS = 6;
type Rows = readonly Row[];
type Change = (tables: ModelTables, rows: Rows, nowMs: number) => void;

/** Executes the commit statement atomically, for the partitions that pass the fence. @returns those partitions */
export function commit(tables: ModelTables, parameters: readonly unknown[], fence: Fence, nowMs: number): number[] {
  const [partitions, epochs, commitNos, cursors, messages, owners] = parameters as [number[], number[], number[], number[], (string | null)[], string[]];
  refuseNul(parameters);
  const own = new Map<number, number>();
  for (const [position, p] of partitions.entries()) {
    const part = tables.parts.get(p);
    if (part === undefined) continue;
    if (fence.owner && part['owner'] !== owners[position]) continue;
    if (fence.epoch && part['epoch'] !== epochs[position]) continue;
    if (fence.commitNo && part['commit_no'] !== commitNos[position]) continue;
    own.set(p, position);
  }
  const sets = rowsOf(parameters, own);
  refuseRepeats(tables, sets);
  for (const [p, position] of own) {
    const part = tables.parts.get(p) as Row;
    Object.assign(part, { commit_no: (part['commit_no'] as number) + 1, cursor: cursors[position], cursor_msg: messages[position] ?? null });
  }
  // All parts of a statement see the rows from before it: changes of earlier rows are applied before new rows.
  for (const change of CHANGES) {
    const rows = sets.get(change.set);
    if (rows !== undefined) change.carryOut(tables, rows, nowMs);
  }
  return [...own.keys()].sort((left, right) => left - right);
}

/** The rows of each set that belong to partitions still owned. */
function rowsOf(parameters: readonly unknown[], own: ReadonlyMap<number, number>): Map<string, Rows> {
  const sets = new Map<string, Rows>();
  let parameter = FENCE_PARAMETERS;
  for (const { name, columns } of rowSets) {
    const values = parameters.slice(parameter, parameter + columns.length) as unknown[][];
    parameter += columns.length;
    const rows: Row[] = [];
    for (let position = 0; position < (values[0]?.length ?? 0); position += 1) {
      const row: Row = {};
      for (const [index, column] of columns.entries()) row[column.name] = cast(values[index]?.[position] ?? null, column.type);
      if (own.has(row['p'] as number)) rows.push(row);
    }
    if (rows.length > 0) sets.set(name, rows);
  }
  return sets;
}

function cast(value: unknown, type: string): unknown {
  return type === 'timestamptz' && typeof value === 'string' ? new Date(value) : value;
}

/** PostgreSQL refuses the character in any text. */
function refuseNul(parameters: readonly unknown[]): void {
  for (const column of parameters) {
    for (const value of column as unknown[]) {
      if (typeof value === 'string' && value.includes('\0')) throw sqlError('22021', 'invalid byte sequence for encoding "UTF8": 0x00');
    }
  }
}

function refuseRepeats(tables: ModelTables, sets: ReadonlyMap<string, Rows>): void {
  const keys = new Set<string>();
  const refuse = (isThere: boolean, key: string) => {
    if (isThere || keys.has(key)) throw sqlError('23505', `duplicate key value violates unique constraint: ${key}`);
    keys.add(key);
  };
  for (const row of sets.get('seen_rows') ?? []) refuse(tables.seen.has(seenKey(row)), `seen ${seenKey(row)}`);
  for (const { session_id: id, off } of sets.get('event_rows') ?? []) {
    refuse(tables.events.get(id as string)?.has(off as number) ?? false, `event ${id} ${off}`);
  }
}

function seenKey({ session_id: session, command_id: command }: Row): string {
  return `${session} ${command}`;
}

const without = (row: Row, ...columns: string[]) => Object.fromEntries(Object.entries(row).filter(([column]) => !columns.includes(column)));

function isOpen(tables: ModelTables, deliveryId: unknown): boolean {
  return (tables.deliveries.get(deliveryId as string) ?? []).some(({ state }) => state === 'open');
}

/** In the order of execution: changes of earlier rows first, new rows last. */
const CHANGES: readonly { set: string; carryOut: Change }[] = [
  { set: 'event_deletions', carryOut: (tables, rows) => rows.forEach(({ session_id: id }) => void tables.events.delete(id as string)) },
  {
    set: 'step_deletions',
    carryOut: (tables, rows) => {
      const sessions = new Set(rows.map(({ session_id: id }) => id));
      for (const run of tables.runs.values()) if (sessions.has(run['session_id'])) tables.steps.delete(run['id'] as string);
    },
  },
  {
    set: 'effect_states',
    carryOut: (tables, rows) => {
      for (const { id, p, state } of rows) {
        for (const effect of tables.effects.get(id as string) ?? []) if (effect['p'] === p && effect['state'] === 'open') effect['state'] = state;
      }
    },
  },
  {
    set: 'outbox_done',
    carryOut: (tables, rows) => {
      tables.outbox = tables.outbox.filter((one) => !rows.some(({ p, id }) => one['p'] === p && one['id'] === id));
    },
  },
  { set: 'timer_done', carryOut: (tables, rows) => rows.forEach(({ p, key }) => void tables.timers.delete(`${p} ${key}`)) },
  {
    set: 'run_rows',
    carryOut: (tables, rows) => {
      for (const { id, state, output, error, started_at: startedAt, completed_at: completedAt } of rows) {
        const run = tables.runs.get(id as string);
        if (run === undefined || (run['state'] !== 'accepted' && run['state'] !== 'running')) continue;
        Object.assign(run, { state, output, error, started_at: run['started_at'] ?? startedAt, completed_at: completedAt });
      }
    },
  },
  {
    set: 'dead_letter_rows',
    carryOut: (tables, rows, nowMs) => {
      for (const row of rows) {
        if (row['source'] === 'delivery' && !isOpen(tables, row['id'])) continue;
        tables.deadLetters.push({ ...row, created_at: new Date(nowMs) });
      }
    },
  },
  {
    set: 'delivery_states',
    carryOut: (tables, rows, nowMs) => {
      for (const { id, state } of rows) {
        for (const one of tables.deliveries.get(id as string) ?? []) {
          if (one['state'] === 'open') Object.assign(one, { state, settled_at: new Date(nowMs) });
        }
      }
    },
  },
  {
    set: 'session_rows',
    carryOut: (tables, rows) => {
      for (const row of rows) {
        const known = tables.sessions.get(row['id'] as string);
        if (known === undefined) tables.sessions.set(row['id'] as string, row);
        else Object.assign(known, without(row, 'id', 'p', 'created_at'));
      }
    },
  },
  {
    set: 'event_rows',
    carryOut: (tables, rows) => {
      for (const row of rows) {
        const id = row['session_id'] as string;
        const log = tables.events.get(id) ?? new Map<number, Row>();
        tables.events.set(id, log.set(row['off'] as number, without(row, 'p')));
      }
    },
  },
  { set: 'seen_rows', carryOut: (tables, rows) => rows.forEach((row) => void tables.seen.set(seenKey(row), without(row, 'p'))) },
  { set: 'effect_rows', carryOut: (tables, rows) => rows.forEach((row) => void list(tables.effects, row['id'] as string).push(row)) },
  { set: 'outbox_rows', carryOut: (tables, rows) => rows.forEach((row) => void tables.outbox.push(row)) },
  { set: 'timer_rows', carryOut: (tables, rows) => rows.forEach((row) => void tables.timers.set(`${row['p']} ${row['key']}`, row)) },
  { set: 'step_rows', carryOut: (tables, rows) => rows.forEach((row) => void list(tables.steps, row['run_id'] as string).push(without(row, 'p'))) },
  { set: 'run_call_rows', carryOut: (tables, rows) => rows.forEach((row) => void tables.runCalls.push(without(row, 'p'))) },
  {
    set: 'delivery_rows',
    carryOut: (tables, rows) => {
      for (const row of rows) list(tables.deliveries, row['id'] as string).push({ ...row, attempts: 0, state: 'open', settled_at: null });
    },
  },
];

const known = new Set(CHANGES.map(({ set }) => set));
const unknown = rowSets.filter(({ name }) => !known.has(name)).map(({ name }) => name);
if (unknown.length > 0 || known.size !== rowSets.length) throw new TypeError(`the model of the commit and the statement differ in: ${unknown.join(', ')}`);
