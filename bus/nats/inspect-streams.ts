import { jetstreamManager } from '@nats-io/jetstream';
import type { StreamState } from '../stream-upgrade.ts';
import { compareStream } from './compare-stream.ts';
import { type Account, dial } from './connection/dial.ts';
import { streamInfoOf } from './declare-streams.ts';
import { defaultSettings } from './settings.ts';
import { declarationsFor } from './streams.ts';

const API_TIMEOUT_MS = 5_000;
const CONNECT_BUDGET_MS = 5_000;

/**
 * Compares the broker's streams with the declarations of this release, and changes nothing.
 *
 * @param account with `replicas`, the servers that store each stream; of `operator`; user null where the broker has none
 * @throws `service.unreachable` when the broker can't be reached in time or refuses the credentials; the broker's errors
 */
export async function inspectStreams({ replicas = defaultSettings.replicas, ...account }: Account & { replicas?: number }): Promise<StreamState[]> {
  const connection = await dial(account, 'switchyard doctor', CONNECT_BUDGET_MS);
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: API_TIMEOUT_MS });
    const states: StreamState[] = [];
    for (const declaration of declarationsFor(null, { ...defaultSettings, replicas })) {
      const { name } = declaration;
      const found = await streamInfoOf(manager, name);
      if (found === null) {
        states.push({ name, state: 'missing', fields: [] });
        continue;
      }
      const { copying, differences } = compareStream(found.config, declaration);
      if (copying.length > 0) states.push({ name, state: 'copying', fields: copying });
      else states.push({ name, state: differences.length === 0 ? 'declared' : 'different', fields: differences.map(({ field }) => field) });
    }
    return states;
  } finally {
    await connection.close();
  }
}
