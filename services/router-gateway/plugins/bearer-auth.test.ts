import { Agent, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type FastifyInstance, fastify } from 'fastify';
import { afterEach, expect, it } from 'vitest';
import { environment, testConfig } from '../test-support/harness.ts';
import { bearerAuth, readKeys } from './bearer-auth.ts';

let app: FastifyInstance;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
afterEach(async () => {
  agent.destroy();
  await app.close();
});

it('authenticates each request of a connection by its own header', async () => {
  app = fastify();
  app.decorateRequest('keyId', '');
  const connections = new Set<unknown>();
  app.addHook('onRequest', bearerAuth(readKeys(testConfig, environment)));
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
