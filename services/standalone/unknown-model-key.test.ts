import { expect, it } from 'vitest';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { unknownModelKey } from './unknown-model-key.ts';

const bundle = { hash: '', body: { manifest: { agent_config: { llms: { api_key: '${LLM}' } } } } } as unknown as Bundle;
const environment = { LLM: 'sk-agent', SHOP: 'sk-shop' };
const key = { id: 'one', disabled: false, management: false, limits: {} };

it.each([
  ['the key of models', [{ ...key, key: '${LLM}' }], []],
  [
    'another key',
    [{ ...key, key: '${SHOP}' }],
    [
      'agent_config.llms.api_key: is none of the keys for models in the configuration of the router: model calls of the agent fail, unless the key was made over HTTP',
    ],
  ],
  ['a management key', [{ ...key, key: '${LLM}', management: true }], [expect.stringContaining('is none of the keys for models')]],
  [
    'a disabled key',
    [{ ...key, key: '${LLM}', disabled: true }],
    ["agent_config.llms.api_key: is the key 'one', which is disabled: model calls of the agent fail"],
  ],
])('%s', (_, keys, warnings) => {
  expect(unknownModelKey(bundle, { keys }, environment)).toEqual(warnings);
});
