import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { findPlatform, findTarget } from './targets.ts';

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

  expect(await findTarget('agent', {}, { DATA_DIR })).toEqual({ url: 'http://a', key: 'agent-key-of-the-file' });
  expect(await findTarget('router', {}, { DATA_DIR })).toEqual({ url: 'http://r', key: 'management-key-of-the-file' });
});

it('is what options name, then the environment, then the folder', async () => {
  const DATA_DIR = await folderWith({ 'running.json': running(), 'keys.json': keys, key: 'key-of-a-line\n' });
  const environment = { DATA_DIR, SWITCHYARD_AGENT_URL: 'http://b', AGENT_API_KEY: 'of-the-environment' };

  expect(await findTarget('agent', {}, environment)).toEqual({ url: 'http://b', key: 'of-the-environment' });
  expect(await findTarget('agent', { url: 'http://c//', keyFile: join(DATA_DIR, 'key') }, environment)).toEqual({ url: 'http://c', key: 'key-of-a-line' });
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

  expect(await findPlatform({}, { DATA_DIR, PLATFORM_PUBLIC_KEY: 'public', PLATFORM_SECRET_KEY: 'secret' })).toEqual(header);
  expect(await findPlatform({ keyFile: join(DATA_DIR, 'both') }, { DATA_DIR })).toEqual(header);
  await expect(findPlatform({}, { DATA_DIR, PLATFORM_PUBLIC_KEY: 'public' })).rejects.toMatchObject({ code: 'request.unauthorized' });
  await expect(findPlatform({}, {})).rejects.toMatchObject({ code: 'service.unreachable' });
});
