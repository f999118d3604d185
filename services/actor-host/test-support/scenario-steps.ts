import fc from 'fast-check';
import type { CommitFault } from './faulty-link.ts';

/**
 * One step. Hosts, sessions, items and timers are numbered over those that exist at the step, so that every sequence is valid. `copies`: how
 * often the same command is sent, each time under another message id.
 */
export type Step =
  | { do: 'create'; session: number; mode: 'auto' | 'manual'; copies: number }
  | { do: 'post'; session: number; gapMs: number; triggersTurn: boolean; copies: number }
  | {
      do: 'run';
      session: number;
      ephemeral: boolean;
      routineId: string;
      start: 'sent' | 'lost' | 'later';
      timeoutMs: number;
      hasCallback: boolean;
      isValid: boolean;
      copies: number;
    }
  | { do: 'delete'; session: number }
  /** A worker reports the result of an item; 0 is the oldest. */
  | { do: 'answer'; item: number; how: number; copies: number }
  /** A worker repeats a report, long after. */
  | { do: 'repeat'; report: number }
  /** A timer fires early. */
  | { do: 'ring'; timer: number; copies: number }
  /** A timer becomes due, and fires only after the next take-over. */
  | { do: 'overdue'; timer: number }
  | { do: 'fault'; host: number; fault: CommitFault }
  | { do: 'kill' | 'pause' | 'wake' | 'stop'; host: number }
  /** The host of a session is paused until another has acquired the session's partition. */
  | { do: 'oversleep'; session: number }
  | { do: 'start'; sameId: boolean }
  | { do: 'wait'; ms: number };

/** Few, so that much happens to each. */
export const SESSIONS = 3;

const nat = fc.nat(30);
const session = fc.nat(SESSIONS - 1);
const copies = fc.oneof({ weight: 5, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constant(2) });
const isTrueMostly = fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) });
const does = <Kind extends Step['do']>(kind: Kind) => fc.constant(kind);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ do: does('create'), session, mode: fc.constantFrom('auto' as const, 'auto' as const, 'auto' as const, 'manual' as const), copies }),
  },
  { weight: 9, arbitrary: fc.record({ do: does('post'), session, gapMs: fc.constantFrom(0, 0, 15, 60), triggersTurn: isTrueMostly, copies }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: does('run'),
      session,
      ephemeral: fc.boolean(),
      routineId: fc.constantFrom('triage', 'refund'),
      start: fc.constantFrom('sent' as const, 'sent' as const, 'lost' as const, 'later' as const),
      timeoutMs: fc.constantFrom(60_000, 60_000, 60_000, 80),
      hasCallback: isTrueMostly,
      isValid: isTrueMostly,
      copies,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: does('delete'), session }) },
  { weight: 24, arbitrary: fc.record({ do: does('answer'), item: fc.nat(4), how: fc.nat(99), copies }) },
  { weight: 2, arbitrary: fc.record({ do: does('repeat'), report: nat }) },
  { weight: 2, arbitrary: fc.record({ do: does('ring'), timer: nat, copies }) },
  { weight: 1, arbitrary: fc.record({ do: does('overdue'), timer: nat }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: does('fault'),
      host: nat,
      fault: fc.constantFrom<CommitFault[]>('before', 'after', 'late', 'late', 'late', 'die-before', 'die-after', 'die-after'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('kill' as const, 'stop' as const), host: nat }) },
  { weight: 2, arbitrary: fc.record({ do: does('pause'), host: nat }) },
  { weight: 2, arbitrary: fc.record({ do: does('wake'), host: nat }) },
  { weight: 2, arbitrary: fc.record({ do: does('oversleep'), session }) },
  { weight: 3, arbitrary: fc.record({ do: does('start'), sameId: fc.boolean() }) },
  { weight: 8, arbitrary: fc.record({ do: does('wait'), ms: fc.constantFrom(2, 10, 30, 80) }) },
);

/** A scenario: steps of some sessions and their hosts. */
export const steps: fc.Arbitrary<Step[]> = fc.array(step, { minLength: 40, maxLength: 120, size: 'max' });
