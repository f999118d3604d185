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

const scripted = { slug: 'scripted', kind: 'scripted' };
const all = { secrets: 'all' } as const;
const gateway = { secrets: 'keys' } as const;

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

describe('checkRouterConfig', () => {
  it('reads slug, name and kind of a provider whose schema it was not given', () => {
    const [example] = corpus.filter(({ name }) => name === 'valid-minimal');
    const document = Object.assign({}, example?.document, {
      providers: [{ slug: 'openai', name: 'OpenAI', kind: 'of-a-newer-worker', region: ['eu'] }, scripted],
    });

    expect(checkRouterConfig(document, environment, gateway).providers).toMatchObject([
      { slug: 'openai', name: 'OpenAI', kind: 'of-a-newer-worker' },
      scripted,
    ]);
    expect(problemsOf(() => checkRouterConfig({ ...document, providers: [{ slug: 'openai' }, scripted] }, environment, gateway))).toEqual([
      'providers[0].kind: is missing; it must be a string',
    ]);
  });

  it('requires each secret that a provider refers to, in any field', () => {
    const [example] = corpus.filter(({ name }) => name === 'valid-minimal');
    const provider = { slug: 'openai', name: '${A_NAME}', kind: 'signed', signature: { keys: ['${OPENAI_API_KEY}', '${MISSING_KEY}'] } };

    expect(
      problemsOf(() => checkRouterConfig(Object.assign({}, example?.document, { providers: [provider, scripted] }), environment, { secrets: 'all' })),
    ).toEqual(['providers[0].signature.keys[1]: the environment variable MISSING_KEY is not set']);
  });

  it('reads an empty variable as not set', () => {
    const [example] = corpus.filter(({ name }) => name === 'valid-minimal');

    expect(problemsOf(() => checkRouterConfig(example?.document, { ...environment, SECOND_KEY: '' }, all))).toEqual([
      'keys[1].key: the environment variable SECOND_KEY is not set',
    ]);
  });

  it('requires no secret of a disabled key', () => {
    const [example] = corpus.filter(({ name }) => name === 'valid-minimal');
    const { keys: [first, second] = [], ...rest } = checkRouterConfig(example?.document, environment, all);
    const disabling = (disabled: boolean) => ({ ...rest, keys: [first, { ...second, disabled }] });

    expect(problemsOf(() => checkRouterConfig(disabling(true), { ...environment, SECOND_KEY: '' }, all))).toEqual([]);
    expect(problemsOf(() => checkRouterConfig(disabling(false), { ...environment, SECOND_KEY: '' }, all))).toHaveLength(1);
  });

  it('refuses a file that is not an object', () => {
    expect(problemsOf(() => checkRouterConfig(null, environment, all))).toEqual(['must be an object']);
  });

  it('fills in the defaults', () => {
    const [example] = corpus.filter(({ name }) => name === 'valid-minimal');

    expect(checkRouterConfig(example?.document, environment, all)).toMatchObject({
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

  it('a model of vectors is no default of chats, and no other model bounds its inputs', () => {
    const endpoints = [{ provider: 'scripted', upstream_model: 'm', max_inputs: 8 }];
    const vectors = { id: 'a/vectors', aliases: ['v'], embeddings: {}, endpoints };
    const document = { providers: [scripted], models: [vectors], keys: [{ id: 'k', key: '${ROUTER_API_KEY}' }] };

    expect(checkRouterConfig(document, environment, gateway).models[0]?.embeddings).toEqual({ shortens: true });
    expect(problemsOf(() => checkRouterConfig({ ...document, default_model: 'v' }, environment, gateway))).toEqual([
      'default_model: must be a model that chats, and not one with embeddings',
    ]);
    expect(problemsOf(() => checkRouterConfig({ ...document, models: [{ id: 'a/chat', endpoints }] }, environment, gateway))).toEqual([
      'models[0].endpoints[0].max_inputs: has no effect: the model has no embeddings',
    ]);
    expect(problemsOf(() => checkRouterConfig({ ...document, models: [{ ...vectors, hedge: true }] }, environment, gateway))).toContain(
      'models[0].hedge: has no effect: a model with embeddings is not hedged',
    );
  });

  it('names a missing file', async () => {
    const path = join(folder, 'missing.yaml');

    await expect(loadRouterConfig(path, environment, all)).rejects.toMatchObject({
      code: 'config.invalid',
      message: `${path} has 1 error:\n  the file does not exist`,
    });
  });

  it('names the file and the line of a mistake', async () => {
    const path = join(folder, 'broken.yaml');
    await writeFile(path, 'providers:\n  - slug: a\n    slug: b\n');

    await expect(loadRouterConfig(path, environment, all)).rejects.toThrow(`${path} has 1 error:\n  line 3, column 5: this key is repeated`);
  });

  it('names the file when its content is wrong', async () => {
    const path = join(folder, 'empty.yaml');
    await writeFile(path, '');

    await expect(loadRouterConfig(path, environment, all)).rejects.toThrow(`${path} has 1 error:\n  must be an object`);
  });

  it('loads the commented example', async () => {
    const path = fileURLToPath(new URL('../../examples/router.yaml', import.meta.url));

    const { config } = await loadRouterConfig(path, { OPENAI_API_KEY: 'a', ROUTER_API_KEY: 'b', SHOP_FRONT_KEY: 'c', ROUTER_MANAGEMENT_KEY: 'd' }, all);

    expect(config.providers.map(({ kind }) => kind)).toEqual(['openai-compatible', 'scripted']);
    expect(config.models.map(({ id }) => id)).toEqual(['openai/gpt-5-mini', 'scripted/assistant']);
    // The sample agent's model.
    expect(config.models[0]?.aliases).toContain('switchyard/assistant');
    expect(config.timeouts).toEqual({ connect_ms: 5_000, first_token_ms: 60_000, idle_ms: 30_000, total_ms: 600_000 });
  });

  it.each([
    ['keys', ['ROUTER_API_KEY', 'SHOP_FRONT_KEY', 'ROUTER_MANAGEMENT_KEY'], ['OPENAI_API_KEY']],
    ['calls', ['OPENAI_API_KEY', 'ROUTER_API_KEY', 'SHOP_FRONT_KEY'], ['ROUTER_MANAGEMENT_KEY']],
  ] as const)('requires of a user of the secrets of %s only those', async (secrets, asked, notAsked) => {
    const path = fileURLToPath(new URL('../../examples/router.yaml', import.meta.url));
    const set = (names: readonly string[]) => Object.fromEntries(names.map((name, position) => [name, `secret ${position}`]));

    await expect(loadRouterConfig(path, set(asked), { secrets })).resolves.toBeDefined();
    for (const name of asked) await expect(loadRouterConfig(path, set(notAsked), { secrets })).rejects.toThrow(name);
  });
});
