import { fastify } from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import type { CallerKey } from '#shared/keys/caller-key.ts';
import { keyScopes } from './key-scopes.ts';

const key = { id: 'one', isManagement: false } as CallerKey;
const management = { ...key, isManagement: true };
const refusal = (message: string) => ({ error: { code: 403, type: 'permission_denied', message, metadata: { error_type: 'permission_denied' } } });

it.each([
  ['modelsOnly', 'a key', key, null],
  ['modelsOnly', 'the platform', null, null],
  ['modelsOnly', 'a management key', management, 'A management key calls no model: use another key'],
  ['managementOnly', 'a management key', management, null],
  ['managementOnly', 'a key', key, 'This request needs a management key'],
  ['managementOnly', 'the platform', null, 'This request needs a management key'],
] as const)('%s: %s', async (name, _, callerKey, message) => {
  const app = fastify();
  onTestFinished(() => app.close());
  app.decorateRequest('callerKey', null);
  app.addHook('onRequest', async (request) => {
    request.callerKey = callerKey;
  });
  app.addHook('onRequest', keyScopes[name]);
  app.get('/', async () => 'reached');
  const reply = await app.inject({ method: 'GET', url: '/' });

  expect(reply.statusCode).toBe(message === null ? 200 : 403);
  if (message !== null) expect(reply.json()).toMatchObject(refusal(message));
});
