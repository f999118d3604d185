import { expect, it } from 'vitest';
import { manifest } from '../contracts/manifest/manifest.ts';
import { tracesOf } from './traces-backend.ts';

const KEY = '$' + '{TRACES_KEY}';

function bodyWith(traces: object | undefined, platform: object = {}) {
  const secret = '$' + '{SECRET}';
  const parsed = manifest.parse({
    id: 'agent-1',
    name: 'Agent',
    version: '1',
    agent_config: {
      runtime: { api_key: secret },
      platform: { public_key: secret, secret_key: secret, ...platform },
      llms: { default: 'a/b', api_key: secret },
      context: { system_prompt: { id: 'prompt', version: 1 }, language: 'match_user' },
      ...(traces === undefined ? {} : { traces }),
    },
  });
  return { manifest: parsed, documents: { prompts: [], routines: [], policies: [], glossaries: [], macros: [], variable_sets: [] } };
}

it.each([
  [undefined, null],
  [{}, 'production'],
  [{ deployment_environment: 'staging', backend: {} }, 'staging'],
])('a manifest without a backend names none: %j', (traces, deploymentEnvironment) => {
  expect(tracesOf(bodyWith(traces), {})).toEqual({ backend: null, deploymentEnvironment });
});

it.each([
  [{}, { TRACES_KEY: 'k' }, null],
  [{ api_key: KEY }, { TRACES_KEY: 'k:1' }, 'Bearer k:1'],
  [{ api_key: KEY, api_key_scheme: 'basic' }, { TRACES_KEY: 'pk:sk' }, `Basic ${Buffer.from('pk:sk').toString('base64')}`],
  [{ api_key: KEY, api_key_scheme: 'basic' }, { TRACES_KEY: 'cGs6c2s=' }, 'Basic cGs6c2s='],
  [{ api_key: KEY }, {}, null],
])('a backend gets its key in the form of its scheme: %j %j', (fields, environment, authorization) => {
  const { backend } = tracesOf(bodyWith({ backend: { url: 'https://traces.example', ...fields } }), environment);
  expect(backend).toEqual({ url: 'https://traces.example', authorization });
});

it('a manifest without a backend uses that of its platform, which gets the platform’s keys', () => {
  const body = bodyWith(undefined, { base_url: 'https://platform.example/' });
  const authorization = `Basic ${Buffer.from('k:k').toString('base64')}`;

  expect(tracesOf(body, { SECRET: 'k' }).backend).toEqual({ url: 'https://platform.example/api/v1/otel', authorization });
  expect(tracesOf(body, {}).backend).toBeNull();
});
