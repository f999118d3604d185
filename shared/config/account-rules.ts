import type { ChatPlugin } from '../contracts/router/chat-request.ts';
import type { RouterConfig } from './router-config.ts';

/** What requests of a key may use, whatever they ask for. */
export interface AccountRules {
  /** An endpoint serves when each list has a slug that names it; empty: all serve. */
  allowed: readonly (readonly string[])[];
  /** An endpoint that one of these slugs names serves no request. */
  ignored: readonly string[];
  /** Only endpoints that neither train on requests nor retain them serve. */
  deniesCollection: boolean;
  /** Only endpoints that retain nothing serve. */
  requiresZdr: boolean;
  /** Of requests that do not name them. */
  plugins: readonly ChatPlugin[];
}

const NO_RULES: AccountRules = { allowed: [], ignored: [], deniesCollection: false, requiresZdr: false, plugins: [] };

/** The rules of the account and of its keys. */
export interface AccountRulesTable {
  /** @param keyId of the router's file; other keys, such as those made over HTTP, have the account's rules */
  of(keyId: string): AccountRules;
}

/** A key narrows the account's rules: it widens none. */
export function accountRulesOf({ account, keys = [] }: Partial<Pick<RouterConfig, 'account' | 'keys'>>): AccountRulesTable {
  const general = narrowed(NO_RULES, account);
  const ofKeys = new Map(keys.flatMap((key): [string, AccountRules][] => (key.account === undefined ? [] : [[key.id, narrowed(general, key.account)]])));
  return { of: (keyId) => ofKeys.get(keyId) ?? general };
}

function narrowed(rules: AccountRules, own: RouterConfig['account']): AccountRules {
  if (own === undefined) return rules;
  const { allowed_providers: allowed, ignored_providers: ignored = [], data_collection: collection, zdr, plugins = [] } = own;
  const named = new Set(plugins.map(({ id }) => id));
  return {
    allowed: allowed === undefined ? rules.allowed : [...rules.allowed, allowed],
    ignored: [...rules.ignored, ...ignored],
    deniesCollection: rules.deniesCollection || collection === 'deny',
    requiresZdr: rules.requiresZdr || zdr === true,
    // A default is no demand: a key's own replaces it.
    plugins: [...rules.plugins.filter(({ id }) => !named.has(id)), ...plugins],
  };
}
