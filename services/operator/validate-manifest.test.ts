import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { validateManifest } from './validate-manifest.ts';

const SAMPLE = fileURLToPath(new URL('../../examples/acme-support/manifest.yaml', import.meta.url));
const environment = {
  AGENT_API_KEY: 'secret-agent',
  ROUTER_API_KEY: 'secret-router',
  PLATFORM_PUBLIC_KEY: 'secret-public',
  PLATFORM_SECRET_KEY: 'secret-secret',
};

/** A minimal agent. */
const agent = {
  ...{ id: 'acme', name: 'Acme', version: '1' },
  agent_config: {
    runtime: { api_key: '${AGENT_API_KEY}' },
    platform: { public_key: '${PLATFORM_PUBLIC_KEY}', secret_key: '${PLATFORM_SECRET_KEY}' },
    llms: { default: 'openai/gpt-5', api_key: '${ROUTER_API_KEY}' },
    context: { system_prompt: { id: 'acme', version: 1 }, language: 'match_user' },
  },
};
const prompt = { id: 'acme', version: 1, text: 'You help.' };

async function folderWith(files: Record<string, unknown>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'switchyard-validate-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
  }
  return folder;
}

async function validate(
  manifest: string,
  { documents = null as string | null, dump = false, json = false, strict = false, given = environment as Record<string, string> } = {},
) {
  const lines: string[] = [];
  const failure = await validateManifest({ manifest, documents, dump, json, strict }, { environment: given, print: (line) => lines.push(line) }).then(
    () => null,
    (error: unknown) => error,
  );
  return { lines, failure };
}

describe('validate', () => {
  it('accepts the sample agent, with the warnings of a start', async () => {
    const { lines, failure } = await validate(SAMPLE);

    expect(failure).toBeNull();
    expect(lines.at(-1)).toMatch(/manifest\.yaml is valid: the agent ".+", configuration [0-9a-f]{12}$/);
  });

  it('reads documents from another folder', async () => {
    const folder = await folderWith({ 'manifest.json': agent, 'elsewhere/prompts/acme.json': prompt });

    expect((await validate(join(folder, 'manifest.json'), { documents: join(folder, 'elsewhere') })).failure).toBeNull();
    expect((await validate(join(folder, 'manifest.json'))).failure).toMatchObject({ code: 'config.invalid' });
  });

  it('lists every problem, also more than a start prints, and no value', async () => {
    const policies = Array.from({ length: 80 }, (_, number) => ({ id: `missing-${number}`, version: 1 }));
    const { context } = agent.agent_config;
    const manifest = {
      ...agent,
      agent_config: { ...agent.agent_config, runtime: { api_key: 'secret-typed-in' }, context: { ...context, policies } },
      secrets: [{ secret_name: 'keys' }],
    };
    const folder = await folderWith({ 'manifest.json': manifest, 'documents/prompts/acme.json': { ...prompt, owner: 'me' }, 'secrets/other.env': '' });

    const { lines, failure } = await validate(join(folder, 'manifest.json'), { given: { SECRETS_DIR: join(folder, 'secrets') }, strict: true });

    for (const policy of policies)
      expect(lines.filter((line) => line.includes(`${policy.id} `) || line.includes(`"${policy.id}"`) || line.endsWith(policy.id))).not.toEqual([]);
    for (const text of ['agent_config.runtime.api_key: ', 'PLATFORM_SECRET_KEY', 'owner: is not a known field', 'there is no secret bundle "keys"']) {
      expect(lines.filter((line) => line.includes(text))).toHaveLength(1);
    }
    expect(failure).toMatchObject({ code: 'config.invalid', message: expect.stringContaining(`manifest.json: ${lines.length} problems`) });
    expect(lines.join()).not.toContain('secret-typed-in');
  });

  it('lists variables that are not set apart: they alone fail no check, but one that is strict', async () => {
    const given = { AGENT_API_KEY: 'secret-agent', PLATFORM_PUBLIC_KEY: 'secret-public' };
    const names = ['PLATFORM_SECRET_KEY', 'ROUTER_API_KEY'];
    const { lines, failure } = await validate(SAMPLE, { given });

    expect(failure).toBeNull();
    expect(lines.filter((line) => line.startsWith('not set: ')).map((line) => /variable (\w+) is not set$/.exec(line)?.[1])).toEqual(names);
    expect(lines.at(-2)).toMatch(/^set these variables before a start, for example in \.env; `start` generates them for the sample agent alone$/);
    expect(lines.at(-1)).toMatch(/ is valid: /);
    const json = JSON.parse((await validate(SAMPLE, { given, json: true })).lines.join('\n'));
    expect(json).toMatchObject({ problems: [], unset: names.map((name) => expect.stringContaining(name)) });

    const strict = await validate(SAMPLE, { given, strict: true });
    expect(strict.failure).toMatchObject({ code: 'config.invalid', message: expect.stringContaining('2 problems; no agent starts with it') });
    expect(strict.lines.map((line) => / (\w+) is not set$/.exec(line)?.[1])).toEqual(names);
  });

  it('lists variables that are not set beside problems, of which they are none', async () => {
    const folder = await folderWith({ 'manifest.json': agent, 'documents/prompts/acme.json': { ...prompt, owner: 'me' } });
    const { lines, failure } = await validate(join(folder, 'manifest.json'), { given: {} });

    expect(failure).toMatchObject({ message: expect.stringContaining('manifest.json: 1 problem; no agent starts with it') });
    expect(lines.filter((line) => line.startsWith('not set: '))).toHaveLength(4);
  });

  it('takes credentials from secret bundles', async () => {
    const folder = await folderWith({
      'manifest.json': { ...agent, secrets: [{ secret_name: 'keys' }] },
      'documents/prompts/acme.json': prompt,
      'secrets/keys.env': Object.entries(environment)
        .map(([name, value]) => `${name}=${value}`)
        .join('\n'),
    });

    expect((await validate(join(folder, 'manifest.json'), { given: { SECRETS_DIR: join(folder, 'secrets') } })).failure).toBeNull();
  });

  it('dumps the whole resolved configuration with its defaults, and no credential', async () => {
    const text = 'You help. '.repeat(2_000);
    const manifest = {
      ...agent,
      agent_config: { ...agent.agent_config, mcps: [{ id: 'shop', hostname: 'http://shop', port: 80, api_key: '${AGENT_API_KEY}' }] },
    };
    const folder = await folderWith({ 'manifest.json': manifest, 'documents/prompts/acme.json': { ...prompt, text } });

    const { lines } = await validate(join(folder, 'manifest.json'), { dump: true });

    const dumped = z.looseObject({ hash: z.string(), manifest: z.looseObject({}), documents: z.looseObject({}) }).parse(JSON.parse(lines.join('\n')));
    expect(dumped).toMatchObject({
      manifest: {
        name: 'Acme',
        agent_config: {
          runtime: { api_key: '[redacted]', log_level: 'INFO' },
          platform: { secret_key: '[redacted]' },
          llms: { api_key: '[redacted]', default: 'openai/gpt-5' },
          mcps: [{ id: 'shop', api_key: '[redacted]', path: '/mcp' }],
        },
      },
      documents: { prompts: [{ ...prompt, text }], policies: [] },
      warnings: [],
    });
    for (const secret of Object.values(environment)) expect(lines.join()).not.toContain(secret);
  });

  it('says that a file or a folder is not there', async () => {
    const folder = await folderWith({});

    const { lines } = await validate(join(folder, 'nowhere.yaml'));

    expect(lines.some((line) => line.startsWith(join(folder, 'nowhere.yaml')))).toBe(true);
    expect(lines.some((line) => line.includes(`${join(folder, 'documents')}: the folder does not exist`))).toBe(true);
  });
});
