import { describe, expect, it } from 'vitest';
import { checkRouterConfig } from './load-router-config.ts';

const environment = { KEY: 'a-key', ENGINE_KEY: 'an-engine-key' };
const endpoint = { url: 'https://guard.example.com/v1/moderations', api_key: '${ENGINE_KEY}' };

function check(plugins: unknown, secrets: 'keys' | 'calls' = 'calls') {
  const document = {
    providers: [{ slug: 'scripted', kind: 'scripted' }],
    models: [{ id: 'a/one', endpoints: [{ provider: 'scripted', upstream_model: 'one' }] }],
    keys: [{ id: 'k', key: '${KEY}' }],
    plugins,
  };
  return checkRouterConfig(document, environment, { secrets }).plugins;
}
const problem = (plugins: unknown, secrets?: 'keys') => expect(() => check(plugins, secrets));

describe('plugins of the router file', () => {
  it('are none by default', () => {
    expect(check(undefined)).toEqual({});
  });

  it('have defaults', () => {
    expect(check({ file_parser: { ocr: { name: 'acme-ocr', url: endpoint.url } } })).toMatchObject({
      file_parser: {
        ocr: {
          ...{ key_header: 'authorization', price: '0', timeout_ms: 60_000 },
          ...{ request: { document: 'document.document_url', also: {} }, response: { pages: 'pages', text: 'markdown' } },
        },
      },
    });
    expect(check({ moderation: { endpoint } })).toEqual({ moderation: { name: 'moderation', endpoint: { ...endpoint, timeout_ms: 10_000 }, patterns: [] } });
  });

  it.each<[string, unknown, string]>([
    ['an unknown plugin', { spelling: {} }, 'plugins.spelling: is not a known field'],
    ['an unknown field', { moderation: { endpoint: { ...endpoint, uri: 'x' } } }, 'plugins.moderation.endpoint.uri: is not a known field'],
    ['a literal key', { moderation: { endpoint: { ...endpoint, api_key: 'sk-1' } } }, 'plugins.moderation.endpoint.api_key: must be a reference'],
    [
      'a key that is not set',
      { moderation: { endpoint: { ...endpoint, api_key: '${NONE}' } } },
      'plugins.moderation.endpoint.api_key: the environment variable NONE is not set',
    ],
    ['an address that is none', { moderation: { endpoint: { url: 'ftp://x' } } }, 'plugins.moderation.endpoint.url: must be a URL'],
    ['moderation by nothing', { moderation: {} }, 'plugins.moderation: must have an endpoint, or patterns'],
    [
      'a pattern that looks ahead',
      { moderation: { patterns: [{ reason: 'a', pattern: '(?=b)' }] } },
      'plugins.moderation.patterns[0].pattern: must not look ahead',
    ],
    [
      'a pattern that refers back',
      {
        moderation: {
          patterns: [
            { reason: 'a', pattern: 'x' },
            { reason: 'b', pattern: '(a)\\1' },
          ],
        },
      },
      'plugins.moderation.patterns[1].pattern: must not refer back',
    ],
    [
      'a pattern that is none',
      { moderation: { patterns: [{ reason: 'a', pattern: '(' }] } },
      'plugins.moderation.patterns[0].pattern: must be a regular expression',
    ],
    ['a search engine named native', { web: { name: 'native', url: endpoint.url } }, 'plugins.web.name: must be'],
    ['a price that is none', { web: { name: 'exa', url: endpoint.url, price: '1e999' } }, 'plugins.web.price: must be a decimal'],
    [
      'a field that is no name',
      { web: { name: 'exa', url: endpoint.url, response: { url: 'a..b' } } },
      'plugins.web.response.url: must be the name of a field',
    ],
    ['a header that is none', { web: { name: 'exa', url: endpoint.url, key_header: 'x key' } }, 'plugins.web.key_header: must be the name of a header'],
    ['a key of the engine in the file', { web: { name: 'exa', url: endpoint.url, api_key: 'sk-1' } }, 'plugins.web.api_key: must be a reference'],
    ['an OCR engine without the ending of its name', { file_parser: { ocr: { name: 'acme', url: endpoint.url } } }, 'plugins.file_parser.ocr.name: must be'],
    ['a reader of files that is none', { file_parser: {} }, 'plugins.file_parser.ocr'],
    [
      'a price of a page that is none',
      { file_parser: { ocr: { name: 'acme-ocr', url: endpoint.url, price: '-1' } } },
      'plugins.file_parser.ocr.price: must be',
    ],
    ['too many patterns', { moderation: { patterns: Array.from({ length: 101 }, () => ({ reason: 'a', pattern: 'x' })) } }, 'plugins.moderation.patterns'],
  ])('are refused at load with %s, by name', (_, plugins, message) => {
    problem(plugins).toThrow(message);
  });

  it('need no secret in a gateway', () => {
    problem({ moderation: { endpoint: { ...endpoint, api_key: '${NONE}' } } }, 'keys').not.toThrow();
  });
});
