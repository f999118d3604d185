import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { StreamUpgrade } from '../stream-upgrade.ts';
import { compareStream } from './compare-stream.ts';
import { type Account, dial } from './connection/dial.ts';
import { copyingStream, streamInfoOf } from './declare-streams.ts';
import { defaultSettings, type NatsSettings } from './settings.ts';
import { declarationsFor, type StreamDeclaration } from './streams.ts';

/** Updating a stream waits for the disk. */
const API_TIMEOUT_MS = 10_000;

/**
 * Brings all streams to this release's declarations and creates missing ones; messages stay. A stream that copies messages is refused: its contents can't be
 * trusted. Idempotent.
 *
 * @param account with `replicas`, the servers that store each stream; of `operator`, which alone may change a stream; user null where the broker has none
 * @throws `service.unreachable` when the broker can't be reached in time or refuses the credentials
 */
export async function upgradeStreams(
  { replicas = defaultSettings.replicas, ...account }: Account & { replicas?: number },
  settings: Partial<NatsSettings> = {},
): Promise<StreamUpgrade[]> {
  const limits: NatsSettings = { ...defaultSettings, replicas, ...settings };
  const connection = await dial(account, 'switchyard streams', limits.connectBudgetMs);
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: API_TIMEOUT_MS });
    const upgrades: StreamUpgrade[] = [];
    for (const declaration of declarationsFor(null, limits)) {
      const { name } = declaration;
      const refused = (error: unknown): StreamUpgrade => ({ name, outcome: 'refused', reason: error instanceof Error ? error.message : String(error) });
      upgrades.push(await upgradeStream(manager, declaration).catch(refused));
    }
    return upgrades;
  } finally {
    await connection.close();
  }
}

/** @throws `bus.stream_refused`, and the broker's errors */
async function upgradeStream(manager: JetStreamManager, declaration: StreamDeclaration): Promise<StreamUpgrade> {
  const { name } = declaration;
  const found = await streamInfoOf(manager, name);
  if (found === null) {
    await manager.streams.add({ ...declaration });
    return { name, outcome: 'created' };
  }
  const { copying, differences } = compareStream(found.config, declaration);
  if (copying.length > 0) throw copyingStream(name, copying);
  if (differences.length === 0) return { name, outcome: 'unchanged' };
  await manager.streams.update(name, Object.fromEntries(differences.map(({ field, declared }) => [field, declared])));
  // The broker silently ignores settings that it does not know or can't change.
  const left = compareStream((await manager.streams.info(name)).config, declaration).differences;
  if (left.length > 0) throw new SwitchyardError('bus.stream_refused', `the broker did not change ${left.map(({ field }) => field).join(', ')}`);
  return { name, outcome: 'changed', differences };
}
