import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { type ActorCalls, openActorCalls } from './test-support/actor-calls.ts';

const secrets = { OPEN: 'sk-open', NARROW: 'sk-narrow', ELSEWHERE: 'sk-elsewhere', MODERATED: 'sk-moderated' };
type KeyName = keyof typeof secrets;

const config = {
  providers: ['east', 'west'].map((slug) => ({ slug, kind: 'scripted' })),
  models: [
    {
      id: 'scripted/assistant',
      endpoints: [
        { provider: 'east', upstream_model: 'primary' },
        { provider: 'west', upstream_model: 'spare' },
      ],
    },
  ],
  plugins: { moderation: { name: 'guard', patterns: [{ reason: 'secrets', pattern: 'PRIVATE KEY' }] } },
  keys: [
    { id: 'open', key: '${OPEN}' },
    { id: 'narrow', key: '${NARROW}', account: { ignored_providers: ['east'] } },
    { id: 'elsewhere', key: '${ELSEWHERE}', account: { allowed_providers: ['west'] } },
    { id: 'moderated', key: '${MODERATED}', account: { plugins: [{ id: 'moderation' }] } },
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

const commandFor = (key: KeyName, request: Partial<ChatRequest> = {}) =>
  calls.commandFor(secrets[key], { request: { messages: [{ role: 'user', content: 'Hello!' }], ...request } });

it.each<[KeyName, string]>([
  ['OPEN', 'east'],
  ['NARROW', 'west'],
  ['ELSEWHERE', 'west'],
])('DESIGN 8: a call of an actor under the key %s, which is known by its hash, is served within the rules of that key', async (key, provider) => {
  expect(await commandFor(key)).toMatchObject({ type: 'call.completed', provider });
});

it('no request of an actor leaves the rules of its key', async () => {
  const onlyEast = { provider: { only: ['east'] } };
  expect(await commandFor('OPEN', onlyEast)).toMatchObject({ type: 'call.completed', provider: 'east' });
  for (const key of ['NARROW', 'ELSEWHERE'] as const) {
    expect(await commandFor(key, onlyEast)).toMatchObject({ type: 'call.failed', failure: { code: 'router.no_provider' } });
  }
});

it('the default plugins of a key apply to the calls of actors under it, and to no others', async () => {
  const secret: Partial<ChatRequest> = { messages: [{ role: 'user', content: 'BEGIN PRIVATE KEY' }] };
  expect(await commandFor('MODERATED')).toMatchObject({ type: 'call.completed' });
  expect(await commandFor('OPEN', secret)).toMatchObject({ type: 'call.completed' });
  expect(await commandFor('MODERATED', secret)).toMatchObject({
    type: 'call.failed',
    failure: { code: 'router.content_policy', details: { reasons: ['secrets'], provider_name: 'guard' } },
  });
});
