import { JetStreamApiError, type JetStreamManager } from '@nats-io/jetstream';
import { isStreamMissing } from './broker-errors.ts';
import type { StreamDeclaration } from './streams.ts';

/** Processes that start together declare the same streams: who loses a race looks again, and a few times is plenty. */
const MAX_ROUNDS = 3;
/** The broker's code for "somebody else has just created it, in another way". */
const NAME_IN_USE = 10058;

/**
 * Creates the streams that are missing and updates those that are declared differently.
 * @throws what the broker threw: no JetStream, no disk for the sizes, a kind of storage that can't be changed
 */
export async function declareStreams(manager: JetStreamManager, declarations: readonly StreamDeclaration[]): Promise<void> {
  await Promise.all(declarations.map((declaration) => declareStream(manager, declaration)));
}

async function declareStream(manager: JetStreamManager, declaration: StreamDeclaration): Promise<void> {
  for (let round = 1; ; round += 1) {
    try {
      const current = await configOf(manager, declaration.name);
      if (current === null) await manager.streams.add({ ...declaration });
      else if (differs(current, declaration)) await manager.streams.update(declaration.name, { ...declaration });
      return;
    } catch (error) {
      const lostTheRace = error instanceof JetStreamApiError && error.code === NAME_IN_USE;
      if (!lostTheRace || round === MAX_ROUNDS) throw error;
    }
  }
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
