import { describe, expect, it } from 'vitest';
import { manifest } from '../contracts/manifest/manifest.ts';
import { check, formatPath, sentenceOf } from './problems.ts';
import { readCorpus } from './read-corpus.ts';

const corpus = readCorpus('manifest');

/** The minimal valid manifest, for tests to break. */
function minimal(): Record<string, unknown> {
  const found = readCorpus('manifest').find(({ name }) => name === 'valid-minimal');
  return Object(found?.document);
}

describe('manifest', () => {
  for (const { name, about, document, errors } of corpus.filter((example) => example.errors.length > 0)) {
    it(`refuses ${about} (${name})`, () => {
      const { problems } = check(manifest, document);

      expect(problems.map(({ path }) => formatPath(path)).sort()).toEqual(errors);
    });
  }

  for (const { name, about, document } of corpus.filter((example) => example.errors.length === 0)) {
    it(`takes ${about} (${name})`, () => {
      expect(check(manifest, document).problems).toEqual([]);
    });
  }

  it('reports of each field what is expected, and never what was found', () => {
    const secret = 'sk-live-0123456789';
    const agentConfig = {
      runtime: { api_key: secret, log_level: secret },
      platform: { base_url: `https://me:${secret}@platform.example`, public_key: secret },
      llms: { default: 'openai/gpt-5', api_key: secret, fallback: secret },
      context: { system_prompt: { id: 'acme', version: '1' }, language: 7 },
      search: { type: secret },
    };

    const sentences = check(manifest, { ...minimal(), version: 1, agent_config: agentConfig }).problems.map(sentenceOf);

    expect(sentences).toEqual([
      'version: must be a string; put it in quotes',
      'agent_config.runtime.api_key: must be a reference like ${VAR_NAME}; literal credentials are not accepted',
      'agent_config.runtime.log_level: must be one of "TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"',
      'agent_config.platform.base_url: must be a URL that starts with http:// or https:// and holds no user name or password',
      'agent_config.platform.public_key: must be a reference like ${VAR_NAME}; literal credentials are not accepted',
      'agent_config.platform.secret_key: is missing; it must be a string',
      'agent_config.llms.api_key: must be a reference like ${VAR_NAME}; literal credentials are not accepted',
      'agent_config.llms.fallback: must be a list',
      'agent_config.context.system_prompt.version: must be a number',
      'agent_config.context.language: must be a string; put it in quotes',
      'agent_config.search.type: must be one of "pgvector", "external"',
    ]);
  });

  it('fills in every default', () => {
    expect(check(manifest, minimal()).value).toEqual({
      schema_version: null,
      id: 'acme',
      name: 'Acme',
      version: '1',
      endpoint: false,
      secrets: [],
      agent_config: {
        runtime: { api_key: '${AGENT_API_KEY}', log_level: 'INFO', max_engine_iterations: 5, policy_batch_size: 5 },
        platform: { base_url: null, public_key: '${PLATFORM_PUBLIC_KEY}', secret_key: '${PLATFORM_SECRET_KEY}' },
        llms: { default: 'openai/gpt-5', api_key: '${ROUTER_API_KEY}', fallback: [], evaluation: null, evaluation_fallback: null },
        context: {
          system_prompt: { id: 'acme', version: 1 },
          language: 'match_user',
          greeting: null,
          preamble: null,
          routines: [],
          policies: [],
          glossaries: [],
          macros: [],
          variables: [],
          reevaluation_tools: [],
          relationships: null,
        },
        mcps: [],
        search: null,
        database: null,
        traces: null,
        webhooks: [],
      },
    });
  });

  it('fills in the defaults of optional blocks', () => {
    const agentConfig = {
      ...Object(minimal().agent_config),
      mcps: [{ id: 'orders', hostname: 'https://orders.example', port: 443 }],
      search: { hostname: 'db', port: 5432, password: '${P}', collection: 'docs', embedding_model: 'openai/small', embedding_dimensions: 3 },
      database: { hostname: 'db', password: '${P}' },
      traces: { backend: {} },
      webhooks: [{ name: 'claims', secret_env: '${S}', header: 'X-Signature', routines: ['triage'] }],
    };

    expect(check(manifest, { ...minimal(), agent_config: agentConfig }).value?.agent_config).toMatchObject({
      mcps: [{ transport: 'streamable-http', path: '/mcp', api_key: null }],
      search: {
        type: 'pgvector',
        user: 'postgres',
        dbname: 'postgres',
        sslmode: 'require',
        content_key: 'content',
        metadata_filter: {},
        top_k: 5,
        prompt: null,
      },
      database: { port: 5432, user: 'postgres', dbname: 'postgres', sslmode: 'require' },
      traces: { deployment_environment: 'production', trace_id_field: null, backend: { url: null, api_key: null, api_key_scheme: 'bearer' } },
      webhooks: [{ algorithm: 'sha256', prefix: '' }],
    });
  });

  it('puts http:// before the host of an external search that has no scheme', () => {
    const search = { type: 'external', hostname: 'search.example', port: 80, path: '/find' };

    const read = check(manifest, { ...minimal(), agent_config: { ...Object(minimal().agent_config), search } }).value;

    expect(read?.agent_config.search).toEqual({ ...search, hostname: 'http://search.example', api_key: null, top_k: 5, max_messages: 20, timeout_seconds: 5 });
  });
});
