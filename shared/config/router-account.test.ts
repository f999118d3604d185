import { expect, it } from 'vitest';
import { checkRouterConfig } from './load-router-config.ts';

function loaded(fields: object, endpoint: object = {}) {
  const config = {
    providers: [
      { slug: 'deepinfra', kind: 'scripted' },
      { slug: 'google-vertex/us-east5', kind: 'scripted' },
    ],
    models: [{ id: 'a/b', endpoints: [{ provider: 'deepinfra', upstream_model: 'm', ...endpoint }] }],
    keys: [{ id: 'one', key: '${ONE}' }],
    ...fields,
  };
  return checkRouterConfig(config, { ONE: 'sk-one' }, { secrets: 'keys' });
}

it('reads the rules of the account and of a key', () => {
  const account = {
    allowed_providers: ['deepinfra/turbo', 'google-vertex'],
    ignored_providers: [],
    data_collection: 'deny',
    zdr: true,
    plugins: [{ id: 'web' }],
  };
  const keys = [{ id: 'one', key: '${ONE}', account: { ignored_providers: ['google-vertex/us-east5'] } }];

  expect(loaded({ account, keys }, { tag: 'deepinfra/turbo' })).toMatchObject({ account, keys });
});

const withKey = (fields: object) => ({ keys: [{ id: 'one', key: '${ONE}', ...fields }] });
it.each<[object, object, string]>([
  [{ account: { allowed_providers: [] } }, {}, 'account.allowed_providers: must have at least 1'],
  [{ account: { allowed_providers: ['deepinfra', 'deepinfar'] } }, {}, 'account.allowed_providers[1]: there is no provider "deepinfar"'],
  [{ account: { ignored_providers: ['deepinfra/turbo'] } }, {}, 'account.ignored_providers[0]: there is no provider "deepinfra/turbo"'],
  [{ account: { ignored_providers: ['google'] } }, {}, 'account.ignored_providers[0]: there is no provider "google"'],
  [{ account: { data_collection: 'never' } }, {}, 'account.data_collection: must be one of "allow", "deny"'],
  [{ account: { zdr: 'yes' } }, {}, 'account.zdr: must be true or false'],
  [{ account: { order: ['deepinfra'] } }, {}, 'account.order: is not a known field'],
  [{ account: { plugins: [{ id: 'web', max_results: 0 }] } }, {}, 'account.plugins[0].max_results: must be at least 1'],
  [withKey({ account: { allowed_providers: ['elsewhere'] } }), {}, 'keys[0].account.allowed_providers[0]: there is no provider "elsewhere"'],
  [withKey({ management: true, account: { zdr: true } }), {}, 'keys[0].account: has no effect: a management key calls no model'],
  [withKey({ id: 'a/b' }), {}, 'keys[0].id: must be lower-case letters'],
  [
    { providers: [{ slug: 'deepinfra//turbo', kind: 'scripted' }] },
    {},
    'providers[0].slug: must be lower-case letters, digits, ".", "_" or "-", with "/" between its parts',
  ],
  [{ providers: [{ slug: 'a'.repeat(65), kind: 'scripted' }] }, {}, 'providers[0].slug: must be'],
  [{}, { tag: 'groq/turbo' }, 'models[0].endpoints[0].tag: must be the provider\'s slug, or begin with it: "deepinfra/…"'],
  [{}, { tag: 'deepinfra-turbo' }, 'models[0].endpoints[0].tag: must be the provider'],
  [
    { models: [{ id: 'a/b', order: 'random', endpoints: [{ provider: 'deepinfra', upstream_model: 'm' }] }] },
    {},
    'models[0].order: must be one of "price", "file"',
  ],
])('refuses %j with %j', (fields, endpoint, message) => {
  expect(() => loaded(fields, endpoint)).toThrow(message);
});
