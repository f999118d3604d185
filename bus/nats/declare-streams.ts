import { JetStreamApiError, type JetStreamManager, type StreamInfo } from '@nats-io/jetstream';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { pauseFor } from '../pause.ts';
import { compareStream } from './compare-stream.ts';
import { isStreamMissing, lacksCluster, lacksResources } from './connection/broker-errors.ts';
import type { DeclaringWith } from './connection/declared-streams.ts';
import type { StreamDeclaration } from './streams.ts';

/** Processes that start together race to create streams; the loser looks again. In all under two seconds. */
const MAX_PASSES = 8;
/** Back-off with jitter, doubled up to the longest. */
const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 500;
/** Just created by another process: name in use, subjects overlap. */
const NAME_IN_USE: readonly number[] = [10058, 10065];

const UPGRADE_COMMAND = 'npm run operator -- streams';

/**
 * Creates missing streams. Differences of existing ones are only logged, with the operator's command that removes them (docs/adr/0024).
 * @param beforeCreating awaited before a stream that is missing is created
 * @returns the broker's time of creation of each, by name
 * @throws `bus.stream_refused` for a stream that copies messages, or replicas on a single server; the broker's errors: no JetStream, no disk
 */
export async function declareStreams(
  { manager, lookUp }: DeclaringWith,
  declarations: readonly StreamDeclaration[],
  log: Pick<Log, 'warn'>,
  beforeCreating: () => Promise<void> = async () => {},
): Promise<Map<string, string>> {
  const deps = { manager, lookUp, log, beforeCreating };
  return new Map(await Promise.all(declarations.map(async (declaration) => [declaration.name, await declareInPasses(deps, declaration)] as const)));
}

interface DeclareDeps extends DeclaringWith {
  log: Pick<Log, 'warn'>;
  beforeCreating: () => Promise<void>;
}

async function declareInPasses(deps: DeclareDeps, declaration: StreamDeclaration): Promise<string> {
  for (let pass = 1, pauseMs = FIRST_PAUSE_MS; ; pass += 1, pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      return await declareStream(deps, declaration);
    } catch (error) {
      if (lacksCluster(error)) {
        const message = `NATS_REPLICAS is ${declaration.num_replicas}, but the broker is a single server and no cluster`;
        throw new SwitchyardError('bus.stream_refused', message, { details: { stream: declaration.name }, cause: error });
      }
      if (!mayBeRace(error) || pass === MAX_PASSES) throw error;
      await pauseFor(pauseMs * (0.5 + Math.random() / 2));
    }
  }
}

async function declareStream({ manager, lookUp, log, beforeCreating }: DeclareDeps, declaration: StreamDeclaration): Promise<string> {
  const { name } = declaration;
  const found = await lookUp((one) => streamInfoOf(one, name));
  if (found === null) {
    await beforeCreating();
    return (await manager.streams.add({ ...declaration })).created;
  }
  const { copying, differences } = compareStream(found.config, declaration);
  if (copying.length > 0) throw copyingStream(name, copying);
  if (differences.length > 0) {
    log.warn({ stream: name, differences }, `a stream of the broker is not as this release declares it, and is used as it is: '${UPGRADE_COMMAND}' changes it`);
  }
  return found.created;
}

/** For a stream that none of our releases declared. */
export function copyingStream(name: string, copying: readonly string[]): SwitchyardError {
  const message = `the stream ${name} of the broker has ${copying.join(', ')}, which copies messages past the permissions of its users: delete it (docs/deploy.md)`;
  return new SwitchyardError('bus.stream_refused', message, { details: { stream: name, copying } });
}

/** nats-server 2.9 checks storage before existence: a lost race may look like a lack of it. */
function mayBeRace(error: unknown): boolean {
  return lacksResources(error) || (error instanceof JetStreamApiError && NAME_IN_USE.includes(error.code));
}

/** Null: no such stream. */
export async function streamInfoOf(manager: JetStreamManager, name: string): Promise<StreamInfo | null> {
  try {
    return await manager.streams.info(name);
  } catch (error) {
    if (isStreamMissing(error)) return null;
    throw error;
  }
}
