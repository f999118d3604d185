import { expect, it } from 'vitest';
import { accountRulesOf } from './account-rules.ts';

const account = { allowed_providers: ['a', 'b'], ignored_providers: ['c'], data_collection: 'deny' as const, plugins: [{ id: 'web' as const }] };
const keyWith = (own?: object) => ({ id: 'k', key: '${K}', disabled: false, management: false, limits: {}, account: own });

it('without a block there are no rules', () => {
  expect(accountRulesOf({ keys: [keyWith()] }).of('k')).toEqual({ allowed: [], ignored: [], deniesCollection: false, requiresZdr: false, plugins: [] });
});

it('a key of the file narrows those of the account, and other keys have the account’s', () => {
  const own = { allowed_providers: ['b', 'd'], ignored_providers: ['e'], data_collection: 'allow', zdr: true };
  const table = accountRulesOf({ account, keys: [keyWith(own)] });

  expect(table.of('k')).toEqual({
    allowed: [
      ['a', 'b'],
      ['b', 'd'],
    ],
    ignored: ['c', 'e'],
    deniesCollection: true,
    requiresZdr: true,
    plugins: account.plugins,
  });
  expect(table.of('key_01')).toEqual({ allowed: [['a', 'b']], ignored: ['c'], deniesCollection: true, requiresZdr: false, plugins: account.plugins });
});

it('a default plugin of a key replaces the account’s of the same id', () => {
  const plugins = [{ id: 'web' as const, enabled: false }, { id: 'moderation' as const }];

  expect(accountRulesOf({ account, keys: [keyWith({ plugins })] }).of('k').plugins).toEqual(plugins);
});
