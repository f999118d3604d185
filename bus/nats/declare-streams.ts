import { JetStreamApiError, type JetStreamManager } from '@nats-io/jetstream';
import type { Log } from '#shared/telemetry/log.ts';
import { pauseFor } from '../pause.ts';
import type { BusUser } from '../subjects.ts';
import { isStreamMissing, lacksResources } from './broker-errors.ts';
import { keeperOf, type StreamDeclaration } from './streams.ts';

/** Processes that start together declare the same streams: who loses a race looks again. All pauses together last less than two seconds. */
const MAX_ROUNDS = 8;
/** Pause before the next look, doubled each time up to the longest. With jitter, so that who met once does not meet again. */
const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 500;
/** The broker's codes for a stream that somebody else has just created: that its name, or that its subjects are taken. */
const TAKEN: readonly number[] = [10058, 10065];

export interface DeclareOptions {
  /** Who declares; null: somebody who may do everything. */
  user: BusUser | null;
  log: Pick<Log, 'info'>;
}

/**
 * Creates the streams that are missing, and updates those that are declared differently and are the user's to keep; others are left as
 * they are, for their keeper to update.
 * @throws what the broker threw: no JetStream, no disk for the sizes, a kind of storage that can't be changed
 */
export async function declareStreams(manager: JetStreamManager, declarations: readonly StreamDeclaration[], options: DeclareOptions): Promise<void> {
  await Promise.all(declarations.map((declaration) => declareInRounds(manager, declaration, options)));
}

async function declareInRounds(manager: JetStreamManager, declaration: StreamDeclaration, options: DeclareOptions): Promise<void> {
  for (let round = 1, pauseMs = FIRST_PAUSE_MS; ; round += 1, pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      return await declareStream(manager, declaration, options);
    } catch (error) {
      if (!mayBeRace(error) || round === MAX_ROUNDS) throw error;
      await pauseFor(pauseMs * (0.5 + Math.random() / 2));
    }
  }
}

async function declareStream(manager: JetStreamManager, declaration: StreamDeclaration, { user, log }: DeclareOptions): Promise<void> {
  const { name } = declaration;
  const current = await configOf(manager, name);
  if (current === null) await manager.streams.add({ ...declaration });
  else if (differs(current, declaration)) {
    const keeper = keeperOf(name);
    if (user === null || user === keeper) await manager.streams.update(name, { ...declaration });
    else log.info({ stream: name, keeper }, 'a stream is declared differently, and is left to its keeper');
  }
}

/** The broker (2.9) asks for room before it sees that a stream is there already, so a lost race may look like a lack of room, too. */
function mayBeRace(error: unknown): boolean {
  return lacksResources(error) || (error instanceof JetStreamApiError && TAKEN.includes(error.code));
}

async function configOf(manager: JetStreamManager, name: string): Promise<Partial<StreamDeclaration> | null> {
  try {
    return (await manager.streams.info(name)).config;
  } catch (error) {
    if (isStreamMissing(error)) return null;
    throw error;
  }
}

function differs(current: Partial<StreamDeclaration>, wanted: StreamDeclaration): boolean {
  const shapeOf = (stream: Partial<StreamDeclaration>) =>
    JSON.stringify([
      stream.subjects,
      stream.storage,
      stream.retention,
      stream.discard,
      stream.max_age,
      stream.max_bytes,
      stream.duplicate_window,
      stream.allow_direct,
    ]);
  return shapeOf(current) !== shapeOf(wanted);
}
