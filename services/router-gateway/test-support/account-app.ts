import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import type { Bus } from '#bus/bus.ts';
import type { Clock } from '#shared/clock.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import type { Database } from '#shared/storage/database.ts';
import { type AccountLimits, accountLimits } from '../account/limits.ts';
import { openTestApp, type TestApp, testConfig } from './harness.ts';

/** The keys of the file; the secret of each is its id. */
const accountKeys = ['manager', 'plain', 'limited', 'off'];
export const accountVariables = Object.fromEntries(accountKeys.map((id) => [`KEY_${id.toUpperCase()}`, id]));
export const accountConfig = routerConfig.parse({
  ...testConfig,
  providers: [...testConfig.providers, { slug: 'east', kind: 'scripted', name: 'East' }],
  keys: [
    { id: 'manager', name: 'Key manager', key: '${KEY_MANAGER}', management: true },
    { id: 'plain', name: 'Key plain', key: '${KEY_PLAIN}' },
    {
      id: 'limited',
      name: 'Key limited',
      key: '${KEY_LIMITED}',
      limit: '2',
      limit_reset: 'daily',
      limits: { requests_per_minute: 60, tokens_per_minute: 1_000, calls_at_once: 3 },
    },
    { id: 'off', name: 'Key off', key: '${KEY_OFF}', disabled: true, limit: '7' },
  ],
});

export interface AccountApp extends TestApp {
  /** Sends a request below `/api/v1` with the management key. */
  asManager(...request: AccountRequest): Promise<LightMyRequestResponse>;
  /** The same with another secret. */
  asKey(secret: string): AccountApp['asManager'];
}

export type AccountRequest = [method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, payload?: InjectOptions['payload'], headers?: Record<string, string>];

interface AccountAppOptions {
  bus: Bus;
  database: Database | null;
  clock: Clock;
  limits?: Partial<AccountLimits>;
}

/** The app with a key of each kind. */
export function openAccountApp({ bus, database, clock, limits = {} }: AccountAppOptions): AccountApp {
  const options = { config: accountConfig, variables: accountVariables, database, clock, accountLimits: { ...accountLimits, ...limits } };
  const opened = openTestApp(bus, options);
  const asKey =
    (secret: string): AccountApp['asManager'] =>
    (method, path, payload, headers = {}) =>
      opened.app.inject({
        method,
        url: `/api/v1${path}`,
        headers: { authorization: `Bearer ${secret}`, ...headers },
        ...(payload !== undefined && { payload }),
      });
  return { ...opened, asManager: asKey('manager'), asKey };
}
