import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { checkRouterConfig } from '../config/load-router-config.ts';
import { fileKeys } from './file-keys.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const environment = { ONE: 'sk-one', SPACED: ' sk-two \n' };

function configWith(keys: object[]) {
  const models = [{ id: 'a/b', endpoints: [{ provider: 'scripted', upstream_model: 'm' }] }];
  return { providers: [{ slug: 'scripted', kind: 'scripted' }], models, keys };
}

function loaded(keys: object[]) {
  return [...fileKeys(checkRouterConfig(configWith(keys), environment, { secrets: 'keys' }), environment).values()];
}

it('reads a key by its variable, and one by its hash', () => {
  const hash = sha256('sk-imported');

  expect(
    loaded([
      { id: 'one', name: 'The first', key: '${ONE}' },
      { id: 'two', key: '${SPACED}', management: true },
      { id: 'three', key: `sha256:${hash}`, limit: '12.000000001', limit_reset: 'weekly', limits: { requests_per_minute: 60, calls_at_once: 2 } },
    ]),
  ).toMatchObject([
    { id: 'one', label: 'The first', hash: sha256('sk-one'), isManagement: false, disabled: false, expiresAtMs: null, limitNano: null, limitReset: null },
    { id: 'two', label: 'two', hash: sha256('sk-two'), isManagement: true },
    {
      id: 'three',
      hash,
      limitNano: 12_000_000_001,
      limitReset: 'weekly',
      rates: { requestsPerMinute: 60, tokensPerMinute: null, callsAtOnce: 2 },
    },
  ]);
});

it('keeps a limit of 0', () => {
  expect(loaded([{ id: 'one', key: '${ONE}', limit: '0' }])).toMatchObject([{ limitNano: 0 }]);
});

it('knows no secret of a disabled key whose variable is not set', () => {
  expect(loaded([{ id: 'one', key: '${GONE}', disabled: true }])).toEqual([]);
});

const id = 'one';
const key = '${ONE}';
it.each([
  [{ id, key: 'sk-literal' }, 'keys[0].key: must be a reference like ${VAR_NAME}, or sha256: and the 64 hex digits'],
  [{ id, key: `sha256:${'A'.repeat(64)}` }, 'keys[0].key: must be a reference'],
  [{ id, key: `sha256:${'a'.repeat(63)}` }, 'keys[0].key: must be a reference'],
  [{ id, key, limit: 5 }, 'keys[0].limit: must be a string; put it in quotes'],
  [{ id, key, limit: '-1' }, 'keys[0].limit: must be US dollars as a decimal like "5.00", at most 1000000'],
  [{ id, key, limit: '1000000.1' }, 'keys[0].limit: must be US dollars'],
  [{ id, key, limit: '0.0000000001' }, 'keys[0].limit: must be US dollars'],
  [{ id, key, limit: '1', limit_reset: 'yearly' }, 'keys[0].limit_reset: must be one of "daily", "weekly", "monthly"'],
  [{ id, key, limit_reset: 'daily' }, 'keys[0].limit_reset: needs a limit'],
  [{ id, key, limits: { requests_per_minute: 0 } }, 'keys[0].limits.requests_per_minute: must be at least 1'],
  [{ id, key, limits: { calls_at_once: 1.5 } }, 'keys[0].limits.calls_at_once: must be a whole number'],
  [{ id, key, limits: { tokens_per_minute: 1e12 } }, 'keys[0].limits.tokens_per_minute: must be at most 1000000000'],
  [{ id, key, limits: { per_day: 1 } }, 'keys[0].limits.per_day: is not a known field'],
  [{ id, key, management: 'yes' }, 'keys[0].management: must be true or false'],
  [{ id, key, management: true, limit: '1' }, 'keys[0].limit: has no effect: a management key calls no model'],
  [{ id, key, management: true, limits: {} }, 'keys[0].limits: has no effect: a management key calls no model'],
])('refuses %j', (entry, message) => {
  expect(() => loaded([entry])).toThrow(message);
});

it('refuses two keys of one secret, also when one is given by its hash, and quotes neither', () => {
  const twice = [
    { id: 'one', key: '${ONE}' },
    { id: 'two', key: `sha256:${sha256('sk-one')}` },
  ];

  expect(() => loaded(twice)).toThrow('keys[1].key: has the same value as keys[0].key');
  expect(() => loaded(twice)).not.toThrow('sk-one');
});
