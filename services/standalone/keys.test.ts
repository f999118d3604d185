import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadKeys, withKeys } from './keys.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'keys-'));
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe('the keys of a data folder', () => {
  it('are refused when their file is damaged, without its content', async () => {
    await writeFile(join(folder, 'keys.json'), '{"router_key": "sk-sy-v1-0123456789abcdef", "agent');

    const error = await loadKeys(folder, {}).catch((cause: unknown) => cause);

    expect(error).toMatchObject({ code: 'config.invalid', message: expect.stringContaining('keys.json is not a valid key file') });
    expect(inspect(error, { depth: 9 })).not.toContain('0123456789abcdef');
  });

  it('are refused when one of them is missing', async () => {
    await writeFile(join(folder, 'keys.json'), JSON.stringify({ router_key: 'sk-sy-v1-0123456789abcdef' }));

    await expect(loadKeys(folder, {})).rejects.toMatchObject({ code: 'config.invalid' });
  });

  it('are made once, for their owner alone, and stay the same', async () => {
    const first = await loadKeys(folder, {});
    const second = await loadKeys(folder, {});

    expect(second).toEqual({ ...first, generated: new Map() });
    expect([...first.generated.values()]).toEqual([first.routerKey, first.managementKey, first.agentKey]);
    expect((await stat(first.path)).mode & 0o777).toBe(0o600);
    expect(Object.keys(JSON.parse(await readFile(first.path, 'utf8')))).toEqual(['router_key', 'router_management_key', 'agent_key', 'house_secret']);
    expect(new Set([first.routerKey, first.managementKey, first.agentKey, first.houseSecret]).size).toBe(4);
  });

  it('get their permissions back when their file is readable for others', async () => {
    const { path } = await loadKeys(folder, {});
    await chmod(path, 0o644);
    await loadKeys(folder, {});

    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it('give way to the environment, which is not written down', async () => {
    const keys = await loadKeys(folder, { ROUTER_API_KEY: 'mine\n', AGENT_API_KEY: '' });

    expect(keys.routerKey).toBe('mine');
    expect(keys.agentKey).toMatch(/^sk-sy-agent-v1-[0-9a-f]{64}$/);
    expect(await readFile(keys.path, 'utf8')).not.toContain('mine');
  });

  it('are only those that a request can be made with, and one that is wanted later is added', async () => {
    const first = await loadKeys(folder, { ROUTER_API_KEY: 'mine' }, ['ROUTER_API_KEY']);
    expect(Object.keys(JSON.parse(await readFile(first.path, 'utf8')))).toEqual(['house_secret']);
    expect(first).toMatchObject({ routerKey: 'mine', agentKey: expect.stringMatching(/^sk-sy-agent-v1-/), generated: new Map() });
    const second = await loadKeys(folder, {}, ['AGENT_API_KEY']);

    expect(second.houseSecret).toBe(first.houseSecret);
    expect(second.generated).toEqual(new Map([['agent_key', second.agentKey]]));
    expect(JSON.parse(await readFile(first.path, 'utf8'))).toEqual({ agent_key: second.agentKey, house_secret: first.houseSecret });
  });
});

describe('the environment of documents', () => {
  const keys = { routerKey: 'router', managementKey: 'management', agentKey: 'agent', houseSecret: 'deployment' };

  it('has the generated keys that the process does not set, and not HOUSE_SECRET', () => {
    const environment = withKeys({ AGENT_API_KEY: '', OTHER: 'kept' }, keys);

    expect(environment).toMatchObject({ ROUTER_API_KEY: 'router', ROUTER_MANAGEMENT_KEY: 'management', AGENT_API_KEY: 'agent', OTHER: 'kept' });
    expect(environment.PLATFORM_PUBLIC_KEY).toMatch(/^pk-/);
    expect(Object.values(environment)).not.toContain('deployment');
  });

  it('has the generated key where the given one is white space alone, and others without that around them', () => {
    const environment = withKeys({ AGENT_API_KEY: ' \n', ROUTER_API_KEY: 'mine\r\n' }, keys);

    expect(environment).toMatchObject({ ROUTER_API_KEY: 'mine', ROUTER_MANAGEMENT_KEY: 'management', AGENT_API_KEY: 'agent' });
  });

  it('counts OPENAI_API_KEY=none, as the sample environment of compose has it, as not given', () => {
    expect(withKeys({ OPENAI_API_KEY: 'none', OTHER: 'none' }, keys)).not.toHaveProperty('OPENAI_API_KEY');
    expect(withKeys({ OPENAI_API_KEY: 'sk', OTHER: 'none' }, keys)).toMatchObject({ OPENAI_API_KEY: 'sk', OTHER: 'none' });
  });

  it('leaves what the process sets', () => {
    expect(withKeys({ AGENT_API_KEY: 'own', PLATFORM_PUBLIC_KEY: 'theirs' }, keys)).toMatchObject({ AGENT_API_KEY: 'own', PLATFORM_PUBLIC_KEY: 'theirs' });
  });
});
