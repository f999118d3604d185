import { expect, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { partitionOf } from '#bus/partition.ts';
import { systemClock } from '#shared/clock.ts';
import { type RouterConfig, routerConfig } from '#shared/config/router-config.ts';
import { ulid } from '#shared/ids.ts';
import { hashOfSecret } from '#shared/keys/caller-key.ts';
import { modelKeys } from '#shared/keys/file-keys.ts';
import type { Database } from '#shared/storage/database.ts';
import { startRouterWorker } from '../service.ts';
import { recordedLog } from './recorded-log.ts';

const WAIT = { timeout: 60_000 };
const SESSION = 'ses_1';

export interface ActorCalls {
  /** The command that the actor gets for a call. It names its key by the hash of the secret alone. */
  commandFor(secret: string, fields?: Partial<RouterCall>): Promise<unknown>;
  /** The row of a call in the ledger; null: it has none, once all records before it are written. */
  recordOf(callId: string): Promise<unknown>;
  close(): Promise<void>;
}

interface Options {
  bus: Bus;
  database: Database;
  /** The router's file. */
  config: unknown;
  /** By the names that the file has for them. */
  secrets: Readonly<Record<string, string>>;
}

/** A router worker that executes calls of actors. */
export async function openActorCalls({ bus, database, config: file, secrets }: Options): Promise<ActorCalls> {
  const config: RouterConfig = routerConfig.parse(file);
  const fileKeys = modelKeys(config, secrets);
  const { log } = recordedLog();
  const worker = await startRouterWorker({ config, environment: secrets, bus, database, cache: null, fileKeys, log, clock: systemClock });
  return {
    async commandFor(secret, fields = {}) {
      const nowMs = systemClock.nowMs();
      const call: RouterCall = {
        ...{ v: 1, callId: `call_${ulid()}`, origin: SESSION, want: 'none', surface: 'parts', deadlineAtMs: nowMs + 600_000, createdAtMs: nowMs },
        ...{ detached: false, republished: false, keyId: `sha256:${hashOfSecret(secret)}`, traceparent: null, maxTokens: null },
        request: { messages: [{ role: 'user', content: 'Hello!' }] },
        reply: { sessionId: SESSION, ...actorFields('trn_1') },
        ...fields,
      };
      await bus.work.publish('router.turn', call.callId, JSON.stringify(call));
      const found: string[] = [];
      const reading = bus.commands.read(partitionOf(SESSION), { sequence: 0, fingerprint: null }, async (commands) => {
        for (const { messageId, body } of commands) if (messageId === call.callId) found.push(body);
      });
      await vi.waitFor(() => expect(found).not.toHaveLength(0), WAIT);
      await reading.stop();
      return JSON.parse(found[0] ?? '');
    },
    async recordOf(callId) {
      const { rows } = await database.query<{ record: unknown }>('select record from usage_ledger where generation_id = $1', [callId]);
      return rows[0]?.record ?? null;
    },
    close: () => worker.stop(),
  };
}
