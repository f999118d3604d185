import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readSecrets, type Secrets } from './secret-bundles.ts';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'switchyard-secrets-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

type Files = Record<string, string>;

async function write(folder: string, files: Files): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
}

async function folderWith(files: Files): Promise<string> {
  const folder = await mkdtemp(join(root, 'bundles-'));
  await write(folder, files);
  return folder;
}

async function read(secretsPath: string | null, names: readonly unknown[], environment: Record<string, string | undefined> = {}): Promise<Secrets> {
  const manifestPath = join(await folderWith({ 'manifest.yaml': JSON.stringify({ secrets: names.map((name) => ({ secret_name: name })) }) }), 'manifest.yaml');
  return readSecrets({ manifestPath, secretsPath, environment });
}

describe('secret bundles', () => {
  it('are files of variables, or folders with a file for each', async () => {
    const folder = await folderWith({
      'keys.env': '# keys\nAGENT_KEY=from-file\nQUOTED="two words"\nlower=ignored\n',
      'tools/TOOL_KEY': 'from-folder\n',
      'tools/TWO_LINES': 'one\ntwo\n\n',
      'tools/tls.crt': 'ignored',
      'other.env': 'OTHER=not-named',
    });
    // As a mounted volume has them.
    await write(folder, { 'mounted/..data/LINKED': 'behind-a-link' });
    await symlink(join('..data', 'LINKED'), join(folder, 'mounted', 'LINKED'));

    const { atStart } = await read(folder, ['keys', 'tools', 'mounted']);

    expect(atStart).toEqual({ AGENT_KEY: 'from-file', QUOTED: 'two words', TOOL_KEY: 'from-folder', TWO_LINES: 'one\ntwo\n', LINKED: 'behind-a-link' });
  });

  it('give way to the environment, and the earlier to the later one; an empty variable is not set', async () => {
    const folder = await folderWith({ 'first.env': 'A=first\nB=first\nC=first', 'second.env': 'B=second' });

    const { atStart } = await read(folder, ['first', 'second'], { A: 'given', C: '', HOME: '/home', EMPTY: '' });

    expect(atStart).toEqual({ A: 'given', B: 'second', C: 'first', HOME: '/home', EMPTY: '' });
  });

  it('are not looked for without a folder: their variables are in the environment', async () => {
    expect((await read(null, ['keys'], { A: 'given' })).atStart).toEqual({ A: 'given' });
  });

  it('end a start by name where they are missing, are no files of the folder, or can not be read', async () => {
    const folder = await folderWith({ 'both.env': 'A=secret-value', 'both/A': 'secret-value', 'named-without-suffix': 'A=secret-value' });
    await write(folder, { 'large.env': `A=${'secret-value'.repeat(100_000)}`, '../outside.env': 'A=secret-value' });
    await symlink('/dev/null', join(folder, 'device.env'));
    const names = ['missing', 'named-without-suffix', 'both', '../outside', '.hidden', 'large', 'device', 'line\nbreak'];

    const failure = await read(folder, names).catch((error: Error) => error);

    const lines = String(failure).split('\n').slice(1);
    expect(lines).toHaveLength(names.length);
    for (const index of names.keys()) expect(lines[index]).toContain(`secrets[${index}].secret_name: `);
    expect(lines[0]).toMatch(/there is no secret bundle "missing"/);
    expect(lines[2]).toMatch(/both a file and a folder/);
    expect(lines[3]).toMatch(/"\.\.\/outside" can't be the name/);
    expect(lines[5]).toMatch(/larger than 1 MiB/);
    expect(lines[6]).toMatch(/not a plain file/);
    expect(String(failure)).not.toContain('secret-value');
    expect(failure).toMatchObject({ code: 'config.invalid' });
  });

  it('are none of a manifest that can not be read: loading it reports that', async () => {
    const folder = await folderWith({});
    const { atStart } = await readSecrets({ manifestPath: join(folder, 'missing.yaml'), secretsPath: folder, environment: { A: 'given' } });

    expect(atStart).toEqual({ A: 'given' });
  });

  it('of another type are passed over: loading the manifest reports them', async () => {
    expect((await read(await folderWith({}), [7, null])).atStart).toEqual({});
  });
});

describe('credentials', () => {
  it('are resolved once: later changes of the environment and of bundles have no effect', async () => {
    const environment: Record<string, string | undefined> = { A: 'before' };
    const folder = await folderWith({ 'keys.env': 'B=before' });
    const { atStart } = await read(folder, ['keys'], environment);

    environment['A'] = 'after';
    await write(folder, { 'keys.env': 'B=after' });

    expect(atStart).toEqual({ A: 'before', B: 'before' });
    expect(() => Object.assign(atStart, { A: 'after' })).toThrow(TypeError);
  });

  it('of webhooks are read anew each time, from the environment first', async () => {
    const environment: Record<string, string | undefined> = { A: 'before' };
    const folder = await folderWith({ 'keys.env': 'A=bundle\nB=before' });
    const { now } = await read(folder, ['keys'], environment);
    expect(await Promise.all([now('${A}'), now('${B}'), now('${C}')])).toEqual(['before', 'before', null]);

    environment['A'] = undefined;
    await write(folder, { 'keys.env': 'A=bundle\nB=after\nC=new' });

    expect(await Promise.all([now('${A}'), now('${B}'), now('${C}')])).toEqual(['bundle', 'after', 'new']);
    await rm(join(folder, 'keys.env'));
    expect(await now('${B}')).toBeNull();
  });
});
