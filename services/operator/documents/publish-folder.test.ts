import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { publishFolder } from './publish-folder.ts';

/** A platform that has one version of a prompt already, and refuses a policy. */
async function platform() {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    const status = request.url?.includes('old') ? 200 : request.url?.includes('taken') ? 409 : 201;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(status === 409 ? { error: { message: 'it is published with another text' } } : {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { asked, target: { url: `http://127.0.0.1:${port}`, key: 'YTpi', scheme: 'Basic' as const } };
}

async function folderOf(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'switchyard-publish-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(folder, path, '..'), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return folder;
}

it('publishes each document at its address, and says which were there', async () => {
  const { asked, target } = await platform();
  const folder = await folderOf({ 'prompts/a.yaml': 'id: old\nversion: 1\n', 'variable-sets/b.json': '{"id":"new","version":3}' });

  const shown: string[] = [];
  expect(await publishFolder(folder, target, (text) => shown.push(text))).toEqual([
    { kind: 'prompts', id: 'old', version: 1, outcome: 'unchanged' },
    { kind: 'variable-sets', id: 'new', version: 3, outcome: 'published' },
  ]);
  expect(shown).toEqual([expect.stringMatching(/^publishing 1 of 2: .*a\.yaml$/), expect.stringMatching(/^publishing 2 of 2: /)]);
  expect(asked).toEqual(['PUT /api/v1/platform/prompts/old/versions/1 Basic YTpi', 'PUT /api/v1/platform/variable-sets/new/versions/3 Basic YTpi']);
});

it('sends nothing when a file can not be read or has no id, and names each', async () => {
  const { asked, target } = await platform();
  const folder = await folderOf({ 'prompts/a.yaml': 'id: old\nversion: 1\n', 'prompts/b.yaml': 'id: [\n', 'routines/c.yaml': 'version: 1\n' });

  await expect(publishFolder(folder, target)).rejects.toMatchObject({ code: 'config.invalid', message: expect.stringMatching(/b\.yaml[\s\S]*c\.yaml/) });
  expect(asked).toEqual([]);
});

it('ends at a refusal, with its file, and at a folder without documents', async () => {
  const { target } = await platform();
  const folder = await folderOf({ 'policies/p.yaml': 'id: taken\nversion: 1\n' });

  await expect(publishFolder(folder, target)).rejects.toMatchObject({ code: 'request.conflict', message: expect.stringMatching(/p\.yaml: it is published/) });
  await expect(publishFolder(await folderOf({}), target)).rejects.toMatchObject({ code: 'config.invalid' });
});
