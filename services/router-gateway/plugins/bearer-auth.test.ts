import { Agent, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type FastifyInstance, fastify } from 'fastify';
import { afterEach, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type CallerKey, hashOfSecret, type KeyDirectory } from '#shared/keys/caller-key.ts';
import { fileKeys } from '#shared/keys/file-keys.ts';
import { openKeyDirectory } from '#shared/keys/open-key-directory.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { environment, testConfig } from '../test-support/harness.ts';
import { bearerAuth } from './bearer-auth.ts';

let app: FastifyInstance;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
afterEach(async () => {
  agent.destroy();
  await app.close();
});

it('authenticates each request of a connection by its own header', async () => {
  app = openApp(openKeyDirectory({ fileKeys: fileKeys(testConfig, environment), database: null, log: silentLog }));
  const connections = new Set<unknown>();
  app.get('/', async ({ keyId, raw }) => {
    connections.add(raw.socket);
    return keyId;
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { KEY_ONE, KEY_TWO, KEY_OFF } = environment;
  const shown = [KEY_ONE, KEY_ONE, KEY_TWO, KEY_ONE, 'sk-test-9', KEY_ONE, KEY_OFF, KEY_OFF, 'sk-test-9', 'sk-test-', KEY_TWO];

  const answers: string[] = [];
  for (const secret of shown) answers.push(await answerTo(secret));

  expect(answers).toEqual(['one', 'one', 'two', 'one', '401', 'one', '401', '401', '401', '401', 'two']);
  expect(connections.size).toBe(1);
});

const JWT = 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI0NzExIn0.c2lnbmF0dXJlLV8';
const anyKey: CallerKey = {
  ...{ id: 'one', hash: '', label: 'one', isManagement: false, disabled: false, expiresAtMs: null, isOauth: false, limitNano: null, limitReset: null },
  rates: { requestsPerMinute: null, tokensPerMinute: null, callsAtOnce: null },
};
const away = new SwitchyardError('service.not_ready', 'the database cannot be reached', { details: { retryAfterMs: 1_000 } });

it.each([
  ['any printable word', 'Bearer !"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~', anyKey, 200, ''],
  ['a JWT', `bearer  ${JWT} `, anyKey, 200, ''],
  ['a key that was looked up', `Bearer ${JWT}`, Promise.resolve(anyKey), 200, ''],
  ['a key that expires later', `Bearer ${JWT}`, { ...anyKey, expiresAtMs: 8e15 }, 200, ''],
  ['no key', undefined, anyKey, 401, 'No API key was given'],
  ['a malformed header', `Basic ${JWT}`, anyKey, 401, 'is not of the form "Bearer <key>"'],
  ['two words', 'Bearer one two', anyKey, 401, 'is not of the form "Bearer <key>"'],
  ['an unknown key', `Bearer ${JWT}`, null, 401, 'The API key is not valid'],
  ['an unknown key that was looked up', `Bearer ${JWT}`, Promise.resolve(null), 401, 'The API key is not valid'],
  ['a disabled key', `Bearer ${JWT}`, { ...anyKey, disabled: true }, 401, 'The API key is disabled'],
  ['an expired key', `Bearer ${JWT}`, { ...anyKey, expiresAtMs: 1 }, 401, 'The API key has expired'],
  ['an expired OAuth key', `Bearer ${JWT}`, { ...anyKey, expiresAtMs: 1, isOauth: true }, 401, 'The OAuth session of the API key has expired'],
] as const)('answers %s', async (_, authorization, found, status, message) => {
  app = openApp({ find: () => found });
  app.get('/', async ({ callerKey }) => callerKey?.id);
  const reply = await app.inject({ method: 'GET', url: '/', headers: authorization === undefined ? {} : { authorization } });

  expect([reply.statusCode, reply.headers['www-authenticate']]).toEqual([status, status === 401 ? 'Bearer' : undefined]);
  if (status === 200) expect(reply.body).toBe('one');
  else expect(reply.json()).toMatchObject({ error: { code: 401, type: 'authentication', message: expect.stringContaining(message) as string } });
});

it.each([
  ['throws', () => failing()],
  ['rejects', () => Promise.reject(away)],
])('passes an error of the look-up on when it %s', async (_, find) => {
  app = openApp({ find });
  app.get('/', async () => 'reached');
  app.setErrorHandler((error: SwitchyardError, __, reply) => reply.code(503).send(error.code));
  const reply = await app.inject({ method: 'GET', url: '/', headers: { authorization: 'Bearer sk-1' } });

  expect([reply.statusCode, reply.body]).toEqual([503, 'service.not_ready']);
});

it('asks for the hash of the secret', async () => {
  const hashes: string[] = [];
  const find = (hash: string) => {
    hashes.push(hash);
    return null;
  };
  app = openApp({ find });
  await app.inject({ method: 'GET', url: '/', headers: { authorization: 'Bearer sk-1' } });

  expect(hashes).toEqual([hashOfSecret('sk-1')]);
});

function failing(): never {
  throw away;
}

function openApp(keys: KeyDirectory): FastifyInstance {
  const opened = fastify();
  opened.decorateRequest('keyId', '');
  opened.decorateRequest('callerKey', null);
  opened.addHook('onRequest', bearerAuth(keys, systemClock));
  return opened;
}

/** The id of the key, or the status of a refusal. */
function answerTo(secret: string): Promise<string> {
  const { port } = app.server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    const asked = request({ agent, port, host: '127.0.0.1', headers: { authorization: `Bearer ${secret}` } }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      response.on('end', () => resolve(response.statusCode === 200 ? text : String(response.statusCode)));
    });
    asked.on('error', reject).end();
  });
}
