import { JetStreamApiError, type JetStreamManager, type StreamConfig } from '@nats-io/jetstream';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { pauseFor } from '../pause.ts';
import { compareStream } from './compare-stream.ts';
import { isStreamMissing, lacksCluster, lacksResources } from './connection/broker-errors.ts';
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
 * @throws `bus.stream_refused` for a stream that copies messages, or replicas on a single server; the broker's errors: no JetStream, no disk
 */
export async function declareStreams(manager: JetStreamManager, declarations: readonly StreamDeclaration[], log: Pick<Log, 'warn'>): Promise<void> {
  await Promise.all(declarations.map((declaration) => declareInPasses(manager, declaration, log)));
}

async function declareInPasses(manager: JetStreamManager, declaration: StreamDeclaration, log: Pick<Log, 'warn'>): Promise<void> {
  for (let pass = 1, pauseMs = FIRST_PAUSE_MS; ; pass += 1, pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      return await declareStream(manager, declaration, log);
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

async function declareStream(manager: JetStreamManager, declaration: StreamDeclaration, log: Pick<Log, 'warn'>): Promise<void> {
  const { name } = declaration;
  const found = await streamConfigOf(manager, name);
  if (found === null) {
    await manager.streams.add({ ...declaration });
    return;
  }
  const { copying, differences } = compareStream(found, declaration);
  if (copying.length > 0) throw copyingStream(name, copying);
  if (differences.length > 0) {
    log.warn({ stream: name, differences }, `a stream of the broker is not as this release declares it, and is used as it is: '${UPGRADE_COMMAND}' changes it`);
  }
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
export async function streamConfigOf(manager: JetStreamManager, name: string): Promise<Partial<StreamConfig> | null> {
  try {
    return (await manager.streams.info(name)).config;
  } catch (error) {
    if (isStreamMissing(error)) return null;
    throw error;
  }
}
