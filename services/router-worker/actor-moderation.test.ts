import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { systemClock } from '#shared/clock.ts';
import { ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { MODERATION_SURFACE } from '#shared/surfaces/surfaces.ts';
import { type ActorCalls, openActorCalls } from './test-support/actor-calls.ts';

const secrets = { AGENT: 'sk-agent', POOR: 'sk-poor', OFF: 'sk-off' };
const config = {
  providers: [{ slug: 'local', kind: 'scripted' }],
  models: [{ id: 'scripted/assistant', endpoints: [{ provider: 'local', upstream_model: 'primary', prices: { prompt: '100', completion: '100' } }] }],
  plugins: { moderation: { name: 'guard', patterns: [{ reason: 'secrets', pattern: 'PRIVATE KEY' }] } },
  keys: [
    { id: 'agent', key: '${AGENT}' },
    { id: 'busy', key: '${POOR}', limits: { requests_per_minute: 1 } },
    { id: 'off', key: '${OFF}', disabled: true },
  ],
};

let database: Database;
let bus: Bus;
let calls: ActorCalls;
beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
  calls = await openActorCalls({ bus, database, config, secrets });
});
afterAll(async () => {
  await calls.close();
  await bus.close();
  await database.close();
});

const check = (content: string, fields: Partial<RouterCall> = {}): Partial<RouterCall> => ({
  surface: MODERATION_SURFACE,
  request: { messages: [{ role: 'user', content }] },
  ...fields,
});

describe('moderation alone, for a call that asks for no model', () => {
  it('passes texts that nothing flags, without an answer of a model', async () => {
    const nothing = { text: '', toolCalls: [], model: '', provider: 'guard', usage: { promptTokens: 0, completionTokens: 0 } };
    expect(await calls.commandFor(secrets.AGENT, check('How long is the warranty?'))).toMatchObject({ type: 'call.completed', ...nothing });
  });

  it('DESIGN 8: moderation alone flags texts, as a call of a model would be refused', async () => {
    expect(await calls.commandFor(secrets.AGENT, check('BEGIN PRIVATE KEY'))).toMatchObject({
      type: 'call.failed',
      failure: { code: 'router.content_policy', details: { reasons: ['secrets'], flagged_input: 'BEGIN PRIVATE KEY', provider_name: 'guard' } },
    });
  });

  it('has no row in the ledger, and counts for no limit of its key', async () => {
    const checked = `call_${ulid()}`;
    for (const callId of [checked, `call_${ulid()}`]) {
      expect(await calls.commandFor(secrets.POOR, check('Hello!', { callId }))).toMatchObject({ type: 'call.completed' });
    }
    const refused = `call_${ulid()}`;
    await calls.commandFor(secrets.OFF, check('Hello!', { callId: refused }));
    const answered = `call_${ulid()}`;
    expect(await calls.commandFor(secrets.POOR, { callId: answered })).toMatchObject({ type: 'call.completed', model: 'scripted/assistant' });
    await expect.poll(() => calls.recordOf(answered), { timeout: 60_000 }).not.toBeNull();
    for (const callId of [checked, refused]) expect(await calls.recordOf(callId)).toBeNull();
  });

  it.each([secrets.OFF, 'sk-unknown'])('fails under the key %s', async (secret) => {
    expect(await calls.commandFor(secret, check('Hello!'))).toMatchObject({ type: 'call.failed', failure: { code: 'router.key_refused' } });
  });

  it('DESIGN 8: moderation alone fails where the router has no engine for it: no text passes unread', async () => {
    await calls.close();
    calls = await openActorCalls({ bus, database, config: { ...config, plugins: {} }, secrets });
    expect(await calls.commandFor(secrets.AGENT, check('Hello!'))).toMatchObject({ type: 'call.failed', failure: { code: 'router.plugin_unavailable' } });
  });
});
