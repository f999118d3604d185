import type { SessionRecord } from '#shared/contracts/agent/session.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { RUN_MACHINE_VERSION, runMachine } from '../../kinds/run/machine.ts';
import type { RunContext } from '../../kinds/run/types.ts';
import { SESSION_MACHINE_VERSION, sessionMachine } from '../../kinds/session/machine.ts';
import type { SessionContext } from '../../kinds/session/types.ts';
import { TURN_MACHINE_VERSION, turnMachine } from '../../kinds/turn/machine.ts';
import type { TurnContext } from '../../kinds/turn/types.ts';

/** All machines together. `parts.machine_v` only grows, so an older host never acquires such a partition. */
export const MACHINE_VERSION = SESSION_MACHINE_VERSION * 10_000 + TURN_MACHINE_VERSION * 100 + RUN_MACHINE_VERSION;

/** A session in its owner's memory, between commands. Immutable. */
export interface SessionState {
  readonly id: string;
  readonly partition: number;
  /** Number of events, so the next offset. */
  readonly head: number;
  readonly record: SessionRecord;
  readonly session: MachineState<SessionContext>;
  readonly turn: (MachineState<TurnContext> & TurnMetadata) | null;
  /** A session never has both a turn and a run. */
  readonly run: (MachineState<RunContext> & RunMetadata) | null;
  readonly isDeleted: boolean;
}

export interface MachineState<Context> {
  readonly value: string;
  readonly context: Context;
}

/** What is stored of a turn besides its machine. */
export interface TurnMetadata {
  /** 32 hex digits, on every event of the turn. */
  readonly traceId: string;
  /** The configuration, fixed at the turn's start. */
  readonly bundleHash: string;
  readonly traceparent: string | null;
  /** Absent in snapshots of earlier releases. */
  readonly startedAtMs?: number | undefined;
}

/** What is stored of a run besides its machine; the rest is in its row. */
export interface RunMetadata extends TurnMetadata {
  readonly runId: string;
  readonly startedAtMs: number;
}

/** Without the record, which has its own column. */
export function encodeSnapshot({ session, turn, run }: SessionState): string {
  return JSON.stringify({ v: MACHINE_VERSION, session, turn, run });
}

type Stored = Pick<SessionState, 'session' | 'turn' | 'run'>;

/** From a version to the next, as literals: makes older snapshots fit. */
const migrations: ReadonlyMap<number, { to: number; migrate: (stored: Stored) => Stored }> = new Map([
  [
    1_001,
    {
      to: 20_101,
      migrate: ({ session, turn }) => ({
        session: { value: session.value, context: { ...session.context, ephemeral: false, isOver: false, runId: null, queue: [], wanted: null } },
        turn,
        run: null,
      }),
    },
  ],
]);

/** @throws `storage.schema_refused` for machines that this program does not know: a mismatch of versions, no fault of the command */
function decodeSnapshot(row: SessionRow): SessionState {
  let { v, ...stored } = row.snapshot as { v: number } & Stored;
  while (v !== MACHINE_VERSION) {
    const step = migrations.get(v);
    if (step === undefined) throw versionFault(row, `version ${v}, known is ${MACHINE_VERSION}`);
    stored = step.migrate(stored);
    v = step.to;
  }
  const { session, turn, run } = stored;
  try {
    sessionMachine.resolveState(session);
    if (turn !== null) turnMachine.resolveState(turn);
    if (run !== null) runMachine.resolveState(run as Parameters<typeof runMachine.resolveState>[0]);
  } catch (cause) {
    throw versionFault(row, 'a state that the machines do not have', cause);
  }
  return { id: row.id, partition: row.p, head: row.head, record: row.record as SessionRecord, session, turn, run, isDeleted: row.is_deleted };
}

function versionFault({ id, p }: SessionRow, found: string, cause?: unknown): SwitchyardError {
  return new SwitchyardError('storage.schema_refused', `the snapshot of session ${id} has ${found}`, { cause, details: { partition: p } });
}

interface SessionRow {
  id: string;
  p: number;
  head: number;
  snapshot: unknown;
  record: unknown;
  is_deleted: boolean;
}

/** Eviction costs one read. */
const MAX_CACHED_SESSIONS = 10_000;

/** Cache of this host's sessions, as the last commit stored them. */
export class Snapshots {
  readonly #database: Queryable;
  readonly #states = new Map<string, SessionState>();

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** Null for sessions that do not exist. One query for all that are not cached. */
  async load(sessionIds: Iterable<string>): Promise<Map<string, SessionState | null>> {
    const found = new Map<string, SessionState | null>();
    const missing: string[] = [];
    for (const id of new Set(sessionIds)) {
      const state = this.#states.get(id);
      if (state === undefined) missing.push(id);
      else found.set(id, state);
    }
    if (missing.length > 0) {
      const { rows } = await this.#database.query<SessionRow>(SELECT, [missing]);
      for (const row of rows) found.set(row.id, decodeSnapshot(row));
      for (const id of missing) if (!found.has(id)) found.set(id, null);
    }
    return found;
  }

  retain(states: Iterable<SessionState>): void {
    for (const state of states) {
      this.#states.delete(state.id);
      this.#states.set(state.id, state);
    }
    for (const id of this.#states.keys()) {
      if (this.#states.size <= MAX_CACHED_SESSIONS) break;
      this.#states.delete(id);
    }
  }

  /** Drops a partition that another host owns. */
  forget(partition: number): void {
    for (const [id, state] of this.#states) if (state.partition === partition) this.#states.delete(id);
  }
}

const SELECT = {
  name: 'load-sessions',
  text: 'select id, p, head, snapshot, record, deleted_at is not null as is_deleted from sessions where id = any($1::text[])',
};
