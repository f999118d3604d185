import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { checkRouterConfig, loadRouterConfig } from '#shared/config/load-router-config.ts';
import { readCorpus } from '#shared/config/read-corpus.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { providerBlock } from './registry.ts';

const environment = { ROUTER_API_KEY: 'secret-one', SECOND_KEY: 'secret-two', OPENAI_API_KEY: 'secret-three' };
const corpus = readCorpus('router-config');
const use = { secrets: 'all', provider: providerBlock } as const;

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

describe("the router's file with the blocks of its providers", () => {
  for (const { name, about, document, errors } of corpus.filter((example) => example.errors.length > 0)) {
    it(`refuses ${about} (${name})`, () => {
      expect(pathsOf(problemsOf(() => checkRouterConfig(document, environment, use)))).toEqual(errors);
    });
  }

  for (const { name, about, document } of corpus.filter((example) => example.errors.length === 0)) {
    it(`takes ${about} (${name})`, () => {
      expect(problemsOf(() => checkRouterConfig(document, environment, use))).toEqual([]);
    });
  }

  it('takes the example with several vendors', async () => {
    const path = fileURLToPath(new URL('../../../examples/router-vendors.yaml', import.meta.url));
    const { config } = await loadRouterConfig(
      path,
      { ...environment, ANTHROPIC_API_KEY: 'secret-four', GEMINI_API_KEY: 'secret-five', GROQ_API_KEY: 'secret-six' },
      use,
    );

    expect(config.providers.map(({ kind }) => kind)).toEqual(['openai-compatible', 'anthropic', 'gemini', 'openai-compatible']);
  });

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

    const lines = problemsOf(() => checkRouterConfig(broken, given, use));

    expect(lines).toEqual([
      'providers[0].base_url: must be a URL that starts with http:// or https:// and holds no user name or password',
      'providers[1].region: is not a known field',
      'models[0].endpoints[0].upstream_model: must not be empty',
      'keys[2].key: must be a reference like ${VAR_NAME}, or sha256: and the 64 hex digits, in lower case, of the SHA-256 of the key; literal credentials are not accepted',
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
});
