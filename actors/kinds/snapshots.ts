import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { ActorStates, SessionState } from '../runtime/apply/session-state.ts';
import type { ActorKind, ActorState, SnapshotPart } from './actor-kind.ts';
import type { Plan } from './plan.ts';
import { actorKinds } from './registry.ts';

interface StoredKind {
  kind: ActorKind<Plan>;
  part: SnapshotPart;
}

/** In the order of the snapshot's fields. */
const stored: readonly StoredKind[] = [...actorKinds.values()].flatMap((kind) => (kind.snapshot === null ? [] : [{ kind, part: kind.snapshot }]));

/** All machines together. `parts.machine_v` only grows, so an older host never acquires such a partition. */
export const MACHINE_VERSION = stored.reduce((sum, { part: { version, place } }) => sum + version * place, 0);

/** Versions in which the parts had other places, by today's: 1,001 was the first version of the session's and of the turn's machine. */
const renumbered: ReadonlyMap<number, number> = new Map([[1_001, 10_100]]);

/** Without the record, which has its own column. */
export function encodeSnapshot({ actors }: Pick<SessionState, 'actors'>): string {
  const snapshot: Record<string, unknown> = { v: MACHINE_VERSION };
  for (const { kind } of stored) snapshot[kind.name] = actors[kind.name] ?? null;
  return JSON.stringify(snapshot);
}

/**
 * The states of a session's actors, migrated to the versions of this release.
 * @throws `storage.schema_refused` for machines that this program does not know: a mismatch of versions, no fault of the command
 */
export function decodeSnapshot({ id, partition, snapshot }: { id: string; partition: number; snapshot: unknown }): ActorStates {
  const { v, ...states } = snapshot as { v: number } & Record<string, ActorState | null>;
  const fault = (found: string, cause?: unknown) =>
    new SwitchyardError('storage.schema_refused', `the snapshot of session ${id} has ${found}`, { cause, details: { partition } });
  const numbered = renumbered.get(v) ?? v;
  if (numbered > MACHINE_VERSION) throw fault(`version ${v}, known is ${MACHINE_VERSION}`);
  const actors: Record<string, ActorState | null> = {};
  for (const { kind, part } of stored) {
    const state = migrated(states[kind.name] ?? null, Math.floor(numbered / part.place) % 100, part);
    if (state === undefined) throw fault(`version ${v}, from which the ${kind.name} has no migration to ${MACHINE_VERSION}`);
    try {
      if (state !== null) kind.machine.resolveState(state);
    } catch (cause) {
      throw fault(`a state that the machine of the ${kind.name} does not have`, cause);
    }
    actors[kind.name] = state;
  }
  return actors;
}

/** Undefined: no migration leads to this release's version. */
function migrated(state: ActorState | null, from: number, { version, migrations }: SnapshotPart): ActorState | null | undefined {
  if (state === null) return null;
  let migrating = state;
  for (let at = from; at !== version; at += 1) {
    const step = migrations.get(at);
    if (step === undefined) return undefined;
    migrating = step(migrating);
  }
  return migrating;
}
