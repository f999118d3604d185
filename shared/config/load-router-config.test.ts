import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { checkRouterConfig, loadRouterConfig } from './load-router-config.ts';
import { readCorpus } from './read-corpus.ts';

const environment = { ROUTER_API_KEY: 'secret-one', SECOND_KEY: 'secret-two', OPENAI_API_KEY: 'secret-three' };
const corpus = readCorpus('router-config');

/** Lines of the error, without the first, which counts them. */
function problemsOf(work: () => unknown): string[] {
  try {
    work();
  } catch (error) {
    if (!(error instanceof SwitchyardError) || error.code !== 'config.invalid') throw error;
    return error.message
      .split('\n')
      .slice(1)
      .map((line) => line.trim());
  }
  return [];
}

function pathsOf(lines: readonly string[]): string[] {
  return lines.map((line) => line.slice(0, line.indexOf(': '))).sort();
}

describe('checkRouterConfig', () => {
  for (const { name, about, document, errors } of corpus.filter((example) => example.errors.length > 0)) {
    it(`refuses ${about} (${name})`, () => {
      expect(pathsOf(problemsOf(() => checkRouterConfig(document, environment)))).toEqual(errors);
    });
  }

  for (const { name, about, document } of corpus.filter((example) => example.errors.length === 0)) {
    it(`takes ${about} (${name})`, () => {
      expect(problemsOf(() => checkRouterConfig(document, environment))).toEqual([]);
    });
  }

  it('DESIGN 10: everything that is wrong with the router’s file is listed at once, and no secret is printed', () => {
    const broken = {
      providers: [
        { slug: 'openai', kind: 'openai-compatible', base_url: 'api.openai.example', api_key: '${MISSING_KEY}' },
        { slug: 'openai', kind: 'scripted', region: 'eu' },
      ],
      models: [{ id: 'openai/gpt-5', aliases: ['openai/gpt-5'], endpoints: [{ provider: 'azure', upstream_model: '' }] }],
      default_model: 'gpt-4',
      keys: [
        { id: 'one', key: '${ROUTER_API_KEY}' },
        { id: 'one', key: '${SAME}' },
        { id: 'three', key: 'secret-typed-in' },
      ],
    };
    const given = { ...environment, SAME: environment.ROUTER_API_KEY };

    const lines = problemsOf(() => checkRouterConfig(broken, given));

    expect(lines).toEqual([
      'providers[0].base_url: must be a URL that starts with http:// or https:// and holds no user name or password',
      'providers[1].region: is not a known field',
      'models[0].endpoints[0].upstream_model: must not be empty',
      'keys[2].key: must be a reference like ${VAR_NAME}; literal credentials are not accepted',
      'providers[1].slug: repeats "openai", which providers[0].slug already uses',
      'keys[1].id: repeats "one", which keys[0].id already uses',
      'models[0].aliases[0]: repeats "openai/gpt-5", which models[0].id already uses',
      'default_model: must be the id or an alias of a model',
      'models[0].endpoints[0].provider: there is no provider "azure"',
      'providers[0].api_key: the environment variable MISSING_KEY is not set',
      'keys[1].key: has the same value as keys[0].key',
    ]);
    expect(lines.join()).not.toContain('secret-');
  });

  it('reads an empty variable as not set', () => {
    const [example] = corpus.filter(({ name }) => name === 'valid-minimal');

    expect(problemsOf(() => checkRouterConfig(example?.document, { ...environment, SECOND_KEY: '' }))).toEqual([
      'keys[1].key: the environment variable SECOND_KEY is not set',
    ]);
  });

  it('requires no secret of a disabled key', () => {
    const [example] = corpus.filter(({ name }) => name === 'valid-minimal');
    const { keys: [first, second] = [], ...rest } = checkRouterConfig(example?.document, environment);
    const disabling = (disabled: boolean) => ({ ...rest, keys: [first, { ...second, disabled }] });

    expect(problemsOf(() => checkRouterConfig(disabling(true), { ...environment, SECOND_KEY: '' }))).toEqual([]);
    expect(problemsOf(() => checkRouterConfig(disabling(false), { ...environment, SECOND_KEY: '' }))).toHaveLength(1);
  });

  it('refuses a file that is not an object', () => {
    expect(problemsOf(() => checkRouterConfig(null, environment))).toEqual(['must be an object']);
  });

  it('fills in the defaults', () => {
    const [example] = corpus.filter(({ name }) => name === 'valid-minimal');

    expect(checkRouterConfig(example?.document, environment)).toMatchObject({
      models: [{ description: '', aliases: ['fast'] }, { aliases: [] }],
      keys: [{ disabled: false }, { disabled: false }],
      timeouts: { connect_ms: 5_000, first_token_ms: 60_000, idle_ms: 30_000, total_ms: 600_000 },
    });
  });
});

describe('loadRouterConfig', () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'switchyard-router-config-'));
  });

  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  it('names a missing file', async () => {
    const path = join(folder, 'missing.yaml');

    await expect(loadRouterConfig(path, environment)).rejects.toMatchObject({
      code: 'config.invalid',
      message: `${path} has 1 error:\n  the file does not exist`,
    });
  });

  it('names the file and the line of a mistake', async () => {
    const path = join(folder, 'broken.yaml');
    await writeFile(path, 'providers:\n  - slug: a\n    slug: b\n');

    await expect(loadRouterConfig(path, environment)).rejects.toThrow(`${path} has 1 error:\n  line 3, column 5: this key is repeated`);
  });

  it('names the file when its content is wrong', async () => {
    const path = join(folder, 'empty.yaml');
    await writeFile(path, '');

    await expect(loadRouterConfig(path, environment)).rejects.toThrow(`${path} has 1 error:\n  must be an object`);
  });

  it('loads the commented example', async () => {
    const path = fileURLToPath(new URL('../../examples/router.yaml', import.meta.url));

    const config = await loadRouterConfig(path, { OPENAI_API_KEY: 'a', ROUTER_API_KEY: 'b', SHOP_FRONT_KEY: 'c' });

    expect(config.providers.map(({ kind }) => kind)).toEqual(['openai-compatible', 'scripted']);
    expect(config.models.map(({ id }) => id)).toEqual(['openai/gpt-5-mini', 'scripted/assistant']);
    // The sample agent's model.
    expect(config.models[0]?.aliases).toContain('switchyard/assistant');
    expect(config.timeouts).toEqual({ connect_ms: 5_000, first_token_ms: 60_000, idle_ms: 30_000, total_ms: 600_000 });
  });

  it.each([
    ['keys', ['ROUTER_API_KEY', 'SHOP_FRONT_KEY'], ['OPENAI_API_KEY']],
    ['providers', ['OPENAI_API_KEY'], ['ROUTER_API_KEY', 'SHOP_FRONT_KEY']],
  ] as const)('requires of a user of the secrets of %s only those', async (secrets, asked, notAsked) => {
    const path = fileURLToPath(new URL('../../examples/router.yaml', import.meta.url));
    const set = (names: readonly string[]) => Object.fromEntries(names.map((name, position) => [name, `secret ${position}`]));

    await expect(loadRouterConfig(path, set(asked), { secrets })).resolves.toBeDefined();
    for (const name of asked) await expect(loadRouterConfig(path, set(notAsked), { secrets })).rejects.toThrow(name);
  });
});
