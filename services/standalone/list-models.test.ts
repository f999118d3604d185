import { once } from 'node:events';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { withModels } from './list-models.ts';

const unasked = { provider: { slug: 'local', name: 'local' }, hasKey: false, models: null };

it('requests the models of an upstream when none are set, chat models first', async () => {
  const asked: unknown[] = [];
  const baseUrl = await upstream(({ url, headers }, response) => {
    asked.push([url, headers.authorization]);
    response.end(JSON.stringify({ data: [{ id: 'nomic-embed-text' }, { id: 'llama3.2:3b' }, { id: 'llama3.2:3b' }, { id: 'no name' }, { id: 'qwen/qwen3' }] }));
  });

  expect((await withModels({ ...unasked, baseUrl }, { OPENAI_API_KEY: 'unused' })).models).toEqual(['llama3.2:3b', 'qwen/qwen3', 'nomic-embed-text']);
  await withModels({ ...unasked, hasKey: true, baseUrl: `${baseUrl}/?version=1` }, { OPENAI_API_KEY: ' sk-1\n' });
  expect(asked).toEqual([
    ['/v1/models', undefined],
    ['/v1/models?version=1', 'Bearer sk-1'],
  ]);
});

it('sends no request when they are set', async () => {
  expect((await withModels({ ...unasked, baseUrl: 'http://127.0.0.1:9/v1', models: ['a'] }, {})).models).toEqual(['a']);
});

it('reports a closed port, and what to do', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const baseUrl = addressOf(server);
  server.close();
  await once(server, 'close');

  await expect(withModels({ ...unasked, baseUrl }, {})).rejects.toMatchObject({
    code: 'config.invalid',
    message: `OPENAI_BASE_URL: ${baseUrl}/models can't be reached (ECONNREFUSED): start the server there, or list its models in OPENAI_MODELS`,
  });
});

it.each<[string, RequestListener, RegExp]>([
  ['wants a key', (_, response) => void response.writeHead(401).end(), /returns 401: the upstream requires a key: set OPENAI_API_KEY/],
  ['has no such path', (_, response) => void response.writeHead(404).end(), /returns 404: correct the address, or list its models in OPENAI_MODELS/],
  ['leads elsewhere', (_, response) => void response.writeHead(302, { location: '/elsewhere' }).end(), /returns 302/],
  ['says something else', (_, response) => void response.end('<html>'), /does not return a list of models/],
  ['has none', (_, response) => void response.end('{"data":[]}'), /lists no model/],
  ['does not end its answer', endless, /more than 8388608 bytes/],
])('ends the start when the upstream %s', async (_, answer, message) => {
  const baseUrl = await upstream(answer);

  await expect(withModels({ ...unasked, baseUrl }, {})).rejects.toThrow(message);
});

it('reports a refused key without printing it', async () => {
  const baseUrl = await upstream((_, response) => void response.writeHead(403).end());
  const failure = withModels({ ...unasked, hasKey: true, baseUrl }, { OPENAI_API_KEY: 'sk-secret' });

  await expect(failure).rejects.toThrow(/the upstream does not accept OPENAI_API_KEY/);
  await expect(failure).rejects.not.toThrow(/sk-secret/);
});

it.each(['sk-secret\nsk-other', 'sk-secret\u0001', 'sk-secret\u2019'])('reports a key that no header can carry without printing it', async (key) => {
  const failure = withModels({ ...unasked, hasKey: true, baseUrl: 'http://127.0.0.1:9/v1' }, { OPENAI_API_KEY: key });

  await expect(failure).rejects.toThrow(/OPENAI_API_KEY contains a character/);
  await expect(failure).rejects.not.toThrow(/sk-/);
});

function endless(_: unknown, response: ServerResponse): void {
  const piece = Buffer.alloc(1024 * 1024, ' ');
  const more = () => {
    while (!response.destroyed && response.write(piece));
  };
  response.on('drain', more);
  more();
}

async function upstream(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return addressOf(server);
}

function addressOf(server: Server): string {
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/v1`;
}
