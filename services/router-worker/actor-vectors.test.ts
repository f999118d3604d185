import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { embed } from './providers/scripted/embed.ts';
import { type ActorCalls, openActorCalls } from './test-support/actor-calls.ts';

const secrets = { OPEN: 'sk-open', MODERATED: 'sk-moderated' };
const config = {
  providers: [{ slug: 'east', name: 'East', kind: 'scripted' }],
  models: [
    { id: 'scripted/assistant', endpoints: [{ provider: 'east', upstream_model: 'primary' }] },
    { id: 'scripted/embedding', embeddings: { dimensions: 256 }, endpoints: [{ provider: 'east', upstream_model: 'embedding' }] },
  ],
  plugins: { moderation: { name: 'guard', patterns: [{ reason: 'secrets', pattern: 'PRIVATE KEY' }] } },
  keys: [
    { id: 'open', key: '${OPEN}' },
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

const request = { model: 'scripted/embedding', messages: [{ role: 'user' as const, content: 'warranty of hoses' }] };
const completed = z.looseObject({ type: z.literal('call.completed'), vectors: z.array(z.string()) });
const commandFor = (dimensions: number) => {
  const embedding: RouterCall['embedding'] = { format: 'base64', dimensions, inputType: null, tokens: null };
  return calls.commandFor(secrets.OPEN, { surface: 'embeddings', embedding, maxTokens: null, request });
};

it('rule 78: an actor’s call for a vector brings it with its command, in base64, and what it used', async () => {
  const command = completed.parse(await commandFor(256));
  const [vector, ...others] = command.vectors;
  const bytes = Buffer.from(vector ?? '', 'base64');
  const floats = Array.from({ length: bytes.byteLength / 4 }, (_, index) => bytes.readFloatLE(index * 4));

  expect(others).toEqual([]);
  expect(floats).toEqual([...(embed({ inputs: ['warranty of hoses'], dimensions: null }).vectors[0] ?? [])]);
  expect(command).toMatchObject({ model: 'scripted/embedding', provider: 'East', text: '', usage: { completionTokens: 0 } });
});

it('rule 78: more dimensions than the model has are refused', async () => {
  expect(await commandFor(257)).toMatchObject({ type: 'call.failed', failure: { code: 'request.invalid' } });
});

it('a chat brings no vectors', async () => {
  const chat = { model: 'scripted/assistant', messages: request.messages };
  expect(await calls.commandFor(secrets.OPEN, { request: chat })).not.toHaveProperty('vectors');
});

it('DESIGN 8: moderation of the account applies to the texts that actors have embedded, and token ids do not pass unread', async () => {
  const embedded = (key: keyof typeof secrets, content: string, tokens: number[][] | null = null) => {
    const embedding: RouterCall['embedding'] = { format: 'base64', dimensions: null, inputType: null, tokens };
    const messages = [{ role: 'user' as const, content }];
    return calls.commandFor(secrets[key], { surface: 'embeddings', embedding, maxTokens: null, request: { ...request, messages } });
  };
  expect(await embedded('MODERATED', 'warranty of hoses')).toMatchObject({ type: 'call.completed' });
  expect(await embedded('OPEN', 'BEGIN PRIVATE KEY')).toMatchObject({ type: 'call.completed' });
  const details = { reasons: ['secrets'], flagged_input: 'BEGIN PRIVATE KEY', provider_name: 'guard', model_slug: 'scripted/embedding' };
  expect(await embedded('MODERATED', 'BEGIN PRIVATE KEY')).toMatchObject({ type: 'call.failed', failure: { code: 'router.content_policy', details } });
  const unread = { code: 'request.invalid', message: expect.stringContaining("which the moderation of this request can't read") };
  expect(await embedded('MODERATED', '', [[1, 2]])).toMatchObject({ type: 'call.failed', failure: unread });
});
