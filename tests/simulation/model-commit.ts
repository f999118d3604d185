import { type CommitRows, refuseNul } from './model-commit-rows.ts';
import { list, type ModelTables, type Row, sqlError } from './model-rows.ts';
import { sessionOfLetter } from './session-of-letter.ts';

/** The conditions of the fence that are checked: all, unless a test plants a fault. */
export interface Fence {
  owner: boolean;
  epoch: boolean;
  commitNo: boolean;
}

type Rows = readonly Row[];
type Kind = Exclude<keyof CommitRows, 'partitions'>;
type Change = (tables: ModelTables, rows: Rows, nowMs: number) => void;

/** Executes a commit atomically, for the partitions that pass the fence. @returns those partitions */
export function commit(tables: ModelTables, rows: CommitRows, fence: Fence, nowMs: number): Set<number> {
  refuseNul(rows);
  const own = rows.partitions.filter(({ p, epoch, commitNo, owner }) => {
    const part = tables.parts.get(p);
    if (part === undefined) return false;
    if (fence.owner && part['owner'] !== owner) return false;
    if (fence.epoch && part['epoch'] !== epoch) return false;
    return !fence.commitNo || part['commit_no'] === commitNo;
  });
  const owned = new Set(own.map(({ p }) => p).sort((left, right) => left - right));
  const rowsOfOwned = (kind: Kind) => rows[kind].filter(({ p }) => owned.has(p as number));
  refuseRepeats(tables, rowsOfOwned('seen'), rowsOfOwned('events'));
  for (const { p, cursor, cursorFingerprint } of own) {
    const part = tables.parts.get(p) as Row;
    Object.assign(part, { commit_no: (part['commit_no'] as number) + 1, cursor, cursor_msg: cursorFingerprint });
  }
  for (const [kind, change] of Object.entries(CHANGES) as [Kind, Change][]) {
    const own = rowsOfOwned(kind);
    if (own.length > 0) change(tables, own, nowMs);
  }
  return owned;
}

function refuseRepeats(tables: ModelTables, seen: Rows, events: Rows): void {
  const keys = new Set<string>();
  const refuse = (isThere: boolean, key: string) => {
    if (isThere || keys.has(key)) throw sqlError('23505', `duplicate key value violates unique constraint: ${key}`);
    keys.add(key);
  };
  for (const row of seen) refuse(tables.seen.has(seenKey(row)), `seen ${seenKey(row)}`);
  for (const { session_id: id, off } of events) refuse(tables.events.get(id as string)?.has(off as number) ?? false, `event ${id} ${off}`);
}

function seenKey({ session_id: session, command_id: command }: Row): string {
  return `${session} ${command}`;
}

const without = (row: Row, ...columns: string[]) => Object.fromEntries(Object.entries(row).filter(([column]) => !columns.includes(column)));

function isOpen(tables: ModelTables, deliveryId: unknown): boolean {
  return (tables.deliveries.get(deliveryId as string) ?? []).some(({ state }) => state === 'open');
}

/** In the order of execution. All parts of the statement see the rows from before it, so changes of earlier rows come first, new rows last. */
const CHANGES: Record<Kind, Change> = {
  deletedSessions: (tables, rows) => {
    const sessions = new Set(rows.map(({ session_id: id }) => id));
    for (const id of sessions) {
      tables.events.delete(id as string);
      tables.agentStates.delete(id as string);
    }
    for (const [turn, rows] of tables.turnSteps) if (sessions.has(rows[0]?.['session_id'])) tables.turnSteps.delete(turn);
    for (const run of tables.runs.values()) {
      if (!sessions.has(run['session_id'])) continue;
      tables.steps.delete(run['id'] as string);
      if (run['ephemeral'] === true) tables.customers.delete(run['customer_id'] as string);
    }
    const ephemeral = new Set([...tables.runs.values()].filter((run) => run['ephemeral'] === true).map((run) => run['session_id']));
    const isDeleted = ({ session_id: session, p }: Row) =>
      session !== null && !ephemeral.has(session) && rows.some((row) => row['session_id'] === session && row['p'] === p);
    tables.deadLetters.splice(0, Infinity, ...tables.deadLetters.filter((letter) => !isDeleted(letter)));
  },
  changedEvents: (tables, rows) => {
    for (const { session_id: id, off, body } of rows) {
      const row = tables.events.get(id as string)?.get(off as number);
      if (row?.['deleted_at'] === null) row['body'] = body;
    }
  },
  deletedEvents: (tables, rows) => {
    for (const { session_id: id, from, to, deleted_at } of rows) {
      for (const [off, row] of tables.events.get(id as string) ?? []) {
        if (off >= (from as number) && off < (to as number) && row['deleted_at'] === null) row['deleted_at'] = deleted_at;
      }
      const isKept = (row: Row) => row['session_id'] !== id || (row['off'] as number) < (from as number);
      for (const staged of [tables.turnSteps, tables.agentStates]) for (const [key, own] of staged) staged.set(key, own.filter(isKept));
    }
  },
  labelledSessions: (tables, rows) => {
    for (const { session_id: id, labels } of rows) {
      tables.sessionLabels = tables.sessionLabels.filter((row) => row['session_id'] !== id || (labels as string[]).includes(row['label'] as string));
    }
  },
  closedEffects: (tables, rows) => {
    for (const { id, p, state } of rows) {
      for (const effect of tables.effects.get(id as string) ?? []) if (effect['p'] === p && effect['state'] === 'open') effect['state'] = state;
    }
  },
  publishedEffects: (tables, rows) => {
    for (const { id, p } of rows) {
      for (const effect of tables.effects.get(id as string) ?? []) if (effect['p'] === p && effect['state'] === 'open') effect['unpublished'] = false;
    }
  },
  disarmedTimers: (tables, rows) => rows.forEach(({ p, key }) => void tables.timers.delete(`${p} ${key}`)),
  runs: (tables, rows) => {
    for (const { id, state, output, error, started_at: startedAt, completed_at: completedAt } of rows) {
      const run = tables.runs.get(id as string);
      if (run === undefined || (run['state'] !== 'accepted' && run['state'] !== 'running')) continue;
      Object.assign(run, { state, output, error, started_at: run['started_at'] ?? startedAt, completed_at: completedAt });
    }
  },
  deadLetters: (tables, rows, nowMs) => {
    for (const row of rows) {
      if (row['source'] === 'delivery' && !isOpen(tables, row['id'])) continue;
      tables.deadLetters.push({ ...row, session_id: sessionOfLetter(row['source'], row['body']), created_at: new Date(nowMs) });
    }
  },
  settledDeliveries: (tables, rows, nowMs) => {
    for (const { id, state } of rows) {
      for (const one of tables.deliveries.get(id as string) ?? []) {
        if (one['state'] === 'open') Object.assign(one, { state, settled_at: new Date(nowMs) });
      }
    }
  },
  sessions: (tables, rows) => {
    for (const row of rows) {
      const known = tables.sessions.get(row['id'] as string);
      if (known === undefined) tables.sessions.set(row['id'] as string, row);
      else Object.assign(known, without(row, 'id', 'p', 'created_at'));
    }
  },
  customers: (tables, rows) => {
    for (const row of rows) if (!tables.customers.has(row['id'] as string)) tables.customers.set(row['id'] as string, without(row, 'p'));
  },
  labels: (tables, rows) => {
    for (const row of rows) {
      const isThere = tables.sessionLabels.some(({ session_id: id, label }) => id === row['session_id'] && label === row['label']);
      if (!isThere) tables.sessionLabels.push(without(row, 'p'));
    }
  },
  events: (tables, rows) => {
    for (const row of rows) {
      const id = row['session_id'] as string;
      const log = tables.events.get(id) ?? new Map<number, Row>();
      tables.events.set(id, log.set(row['off'] as number, without(row, 'p')));
    }
  },
  seen: (tables, rows) => rows.forEach((row) => void tables.seen.set(seenKey(row), without(row, 'p'))),
  seenAgain: (tables, rows) => rows.forEach((row) => void (tables.seen.has(seenKey(row)) && tables.seen.set(seenKey(row), without(row, 'p')))),
  effects: (tables, rows) => rows.forEach((row) => void list(tables.effects, row['id'] as string).push({ ...row })),
  timers: (tables, rows) => rows.forEach((row) => void tables.timers.set(`${row['p']} ${row['key']}`, row)),
  steps: (tables, rows) => rows.forEach((row) => void list(tables.steps, row['run_id'] as string).push(without(row, 'p'))),
  turnSteps: (tables, rows) => rows.forEach((row) => void list(tables.turnSteps, row['turn_id'] as string).push(without(row, 'p'))),
  agentStates: (tables, rows) => rows.forEach((row) => void list(tables.agentStates, row['session_id'] as string).push(without(row, 'p'))),
  runCalls: (tables, rows) => rows.forEach((row) => void tables.runCalls.push(without(row, 'p'))),
  deliveries: (tables, rows) => {
    for (const row of rows) list(tables.deliveries, row['id'] as string).push({ ...row, attempts: 0, counted_by: null, state: 'open', settled_at: null });
  },
};
