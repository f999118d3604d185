import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { manifest as manifestSchema } from '#shared/contracts/manifest/manifest.ts';
import { platformModels } from './platform-models.ts';

const manifest = manifestSchema.parse({
  id: 'acme',
  name: 'Acme',
  version: '1',
  agent_config: {
    runtime: { api_key: '${A}' },
    platform: { public_key: '${B}', secret_key: '${C}' },
    llms: { default: 'acme/first', fallback: ['acme/b-c', 'acme/gone'], evaluation: 'acme/gone:free', api_key: '${D}' },
    context: { system_prompt: { id: 'greet', version: 1 }, language: 'match_user' },
  },
});

async function lookedUp(answer: (path: string, response: ServerResponse) => void) {
  const asked: (string | undefined)[] = [];
  const server = createServer(({ url = '', headers }, response) => {
    asked.push(headers.authorization);
    answer(url, response);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { missing, warnings } = await platformModels(manifest, { baseUrl, apiKey: 'sk-secret', keyHash: 'h' }, {});
  const masked = (line: string) => line.replaceAll(baseUrl, 'URL');
  return { missing: missing.map(masked), warnings: warnings.map(masked), asked };
}

it('the models of the manifest are looked up at the platform, and those that it does not have are named', async () => {
  const known = new Set(['/api/v1/models/acme/first', '/api/v1/models/acme/b-c']);
  const { missing, warnings, asked } = await lookedUp((path, response) => void response.writeHead(known.has(path) ? 200 : 404).end('{}'));

  expect(missing).toEqual([
    'agent_config.llms.fallback[1]: the platform at URL has no model "acme/gone"',
    'agent_config.llms.evaluation: the platform at URL has no model "acme/gone:free"',
  ]);
  expect(warnings).toEqual([]);
  expect(asked).toEqual(Array.from({ length: 4 }, () => 'Bearer sk-secret'));
});

it.each<[string, (path: string, response: ServerResponse) => void, RegExp]>([
  ['refuses the key', (_, response) => void response.writeHead(401).end(), /^agent_config\.llms\.api_key: the platform at URL does not accept it \(401\)/],
  ['fails', (_, response) => void response.writeHead(503).end(), /could not be looked up .*: it answers 503$/],
  ['sends nothing', () => {}, /could not be looked up .*: it does not answer$/],
])('a platform that %s ends no start, and a warning says so', async (_, answer, warning) => {
  const { missing, warnings } = await lookedUp(answer);
  expect([missing, warnings]).toEqual([[], [expect.stringMatching(warning)]]);
});
