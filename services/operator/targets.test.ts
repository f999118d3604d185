import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../scripts/servers/test-tcp.mjs';
import { addressProblem, findPlatform, findTarget } from './targets.ts';

async function folderWith(files: Record<string, unknown>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'switchyard-targets-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
  return folder;
}

const running = (pid = process.pid) => ({ pid, router: { url: 'http://r', key: null }, agent: { url: 'http://a/', key: { field: 'agent_key' } } });
const keys = { agent_key: 'agent-key-of-the-file', router_management_key: 'management-key-of-the-file' };

it('is the server that runs on the data folder, with the keys beside it', async () => {
  const DATA_DIR = await folderWith({ 'running.json': running(), 'keys.json': keys });

  const from = { addressFrom: join(DATA_DIR, 'running.json'), keyFrom: join(DATA_DIR, 'keys.json') };
  expect(await findTarget('agent', {}, { DATA_DIR })).toMatchObject({ url: 'http://a', key: 'agent-key-of-the-file', ...from });
  expect(await findTarget('router', {}, { DATA_DIR })).toMatchObject({ url: 'http://r', key: 'management-key-of-the-file', ...from });
});

it('is, in a cluster, the first process that answers', async () => {
  const server = createServer((_request, response) => void response.end('{}'));
  onTestFinished(() => void server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  const dead = `http://127.0.0.1:${await freePort()}`;
  const cluster = { kind: 'cluster', pid: process.pid, router: { urls: [dead, dead] }, agent: { urls: [dead, url] } };
  const DATA_DIR = await folderWith({ 'running.json': cluster, 'keys.json': keys });

  expect(await findTarget('agent', {}, { DATA_DIR })).toMatchObject({ url });
  expect(await findTarget('router', {}, { DATA_DIR })).toMatchObject({ url: dead });
});

it('is what options name, then the environment, then the folder', async () => {
  const DATA_DIR = await folderWith({ 'running.json': running(), 'keys.json': keys, key: 'key-of-a-line\n' });
  const environment = { DATA_DIR, SWITCHYARD_AGENT_URL: 'http://b', AGENT_API_KEY: 'of-the-environment' };

  expect(await findTarget('agent', {}, environment)).toMatchObject({
    url: 'http://b',
    addressFrom: 'SWITCHYARD_AGENT_URL',
    key: 'of-the-environment',
    keyFrom: 'AGENT_API_KEY',
  });
  const keyFile = join(DATA_DIR, 'key');
  expect(await findTarget('agent', { url: 'http://c//', keyFile }, environment)).toMatchObject({
    url: 'http://c',
    addressFrom: '--url',
    key: 'key-of-a-line',
    keyFrom: keyFile,
  });
  expect(await findTarget('agent', { keyFile: join(DATA_DIR, 'keys.json') }, environment)).toMatchObject({ key: 'agent-key-of-the-file' });
});

it('is refused without a server that runs, without a key, and with a file that has none', async () => {
  // No process has this id: it is above the limit of Linux.
  const DATA_DIR = await folderWith({ 'running.json': running(2 ** 22 + 1), key: 'two words\n', 'other.json': { router_key: 'r' } });

  await expect(findTarget('agent', {}, { DATA_DIR })).rejects.toMatchObject({ code: 'service.unreachable' });
  await expect(findTarget('agent', { url: 'http://a' }, { DATA_DIR })).rejects.toMatchObject({ code: 'request.unauthorized' });
  for (const name of ['key', 'other.json', 'gone']) {
    await expect(findTarget('agent', { url: 'http://a', keyFile: join(DATA_DIR, name) }, { DATA_DIR })).rejects.toMatchObject({ code: 'request.unauthorized' });
  }
});

it('is a platform with both of its keys, of the environment or of a file', async () => {
  const DATA_DIR = await folderWith({ 'running.json': running(), both: 'public:secret\n' });
  const header = { url: 'http://r', scheme: 'Basic', key: Buffer.from('public:secret').toString('base64') };

  expect(await findPlatform({}, { DATA_DIR, PLATFORM_PUBLIC_KEY: 'public', PLATFORM_SECRET_KEY: 'secret' })).toMatchObject(header);
  expect(await findPlatform({ keyFile: join(DATA_DIR, 'both') }, { DATA_DIR })).toMatchObject(header);
  await expect(findPlatform({}, { DATA_DIR, PLATFORM_PUBLIC_KEY: 'public' })).rejects.toMatchObject({ code: 'request.unauthorized' });
  await expect(findPlatform({}, {})).rejects.toMatchObject({ code: 'service.unreachable' });
});

it.each([
  ['http://127.0.0.1:8080', null],
  ['https://agent.example/prefix', null],
  ['nonsense', 'it must be an address such as'],
  ['127.0.0.1:8080', 'it must be an address such as'],
  ['ftp://agent.example', 'it must be an address such as'],
  ['http://user:word@agent.example', 'it must have no user'],
  ['http://agent.example/?key=word', 'it must have neither a query'],
])('says what is wrong with the address %s: %s', async (url, problem) => {
  const found = addressProblem(url);

  if (problem === null) return expect(found).toBeNull();
  expect(found).toContain(problem);
  const environment = { SWITCHYARD_ROUTER_URL: url, ROUTER_MANAGEMENT_KEY: 'k' };
  await expect(findTarget('router', {}, environment)).rejects.toMatchObject({ code: 'config.invalid', message: `SWITCHYARD_ROUTER_URL: ${found}` });
});
