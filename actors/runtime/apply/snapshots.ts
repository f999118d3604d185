import type { SessionRecord } from '#shared/contracts/agent/session.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { RUN_MACHINE_VERSION, runMachine } from '../../kinds/run/machine.ts';
import type { RunContext } from '../../kinds/run/types.ts';
import { SESSION_MACHINE_VERSION, sessionMachine } from '../../kinds/session/machine.ts';
import type { SessionContext } from '../../kinds/session/types.ts';
import { TURN_MACHINE_VERSION, turnMachine } from '../../kinds/turn/machine.ts';
import type { TurnContext } from '../../kinds/turn/types.ts';
import type { StoredSession } from '../../store/port/session-store.ts';

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
export function decodeSession({ snapshot, ...row }: StoredSession): SessionState {
  let { v, ...stored } = snapshot as { v: number } & Stored;
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
  return { ...row, session, turn, run };
}

function versionFault({ id, partition }: Pick<StoredSession, 'id' | 'partition'>, found: string, cause?: unknown): SwitchyardError {
  return new SwitchyardError('storage.schema_refused', `the snapshot of session ${id} has ${found}`, { cause, details: { partition } });
}
