import type { FastifyPluginAsync } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Bus } from '#bus/bus.ts';
import type { Clock } from '#shared/clock.ts';
import type { Living } from '#shared/config/living.ts';
import { parseJsonBodies } from '#shared/http-server/json-bodies.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { admitRequests, countedByAdmission, type RequestAdmission } from '../admission.ts';
import type { GatewaySetup } from '../gateway-setup.ts';
import { neededDatabase } from '../needed-database.ts';
import { activity } from './activity.ts';
import { type ApproveKeyDeps, approveKey } from './approve-key.ts';
import { AwaitedGenerations } from './awaited-generations.ts';
import { CodeRows } from './code-rows.ts';
import { createCode } from './create-code.ts';
import { credit } from './credit.ts';
import { type ExchangeCodeDeps, exchangeCode } from './exchange-code.ts';
import { generation } from './generation.ts';
import { readGenerations } from './generation-rows.ts';
import { KeyRows } from './key-rows.ts';
import { keys } from './keys.ts';
import { KnownKeys } from './known-keys.ts';
import type { AccountLimits } from './limits.ts';
import { SpendRows } from './spend-rows.ts';

export interface AccountDeps {
  /** Null: none is configured, and the routes answer 503. */
  database: Queryable | null;
  setup: Living<Pick<GatewaySetup, 'fileKeys' | 'providerNames'>>;
  houseSecret: string;
  bus: Pick<Bus, 'notices'>;
  /** Of the routes without a key: another one. */
  admission: RequestAdmission;
  limits: AccountLimits;
  clock: Clock;
}

/** The routes of keys, credit and usage (ADR 51): beside the path of model calls, which knows nothing of them. */
export function account(deps: AccountDeps): FastifyPluginAsync {
  const { limits, setup } = deps;
  const database = databaseOf(deps);
  const keyRows = new KeyRows(database);
  const spendRows = new SpendRows(database);
  const knownKeys = new KnownKeys(setup, keyRows, spendRows);
  const generations = new AwaitedGenerations({ read: (ids) => readGenerations(database, ids), limits });
  const all = { ...deps, database, keyRows, spendRows, knownKeys, generations };
  const codes = createCode({ codeRows: new CodeRows(database), clock: deps.clock });
  return asPlugin(deps, [keys(all), codes, credit(all), generation(all), activity(all)]);
}

/** The page for approving a key, which has the key in its form. */
export function keyApproval(deps: AccountDeps & Omit<ApproveKeyDeps, 'codeRows'>): FastifyPluginAsync {
  return asPlugin(deps, [approveKey({ ...deps, codeRows: new CodeRows(databaseOf(deps)) })]);
}

/** The routes of keys that need none: the exchange of a code for the key that was approved. */
export function keyExchange(deps: AccountDeps & Pick<ExchangeCodeDeps, 'cache'>): FastifyPluginAsync {
  const database = databaseOf(deps);
  return asPlugin(deps, [exchangeCode({ ...deps, codeRows: new CodeRows(database), keyRows: new KeyRows(database) })]);
}

function databaseOf({ database, limits }: AccountDeps): Queryable {
  return neededDatabase(database, 'Keys, credit and usage', limits.retryAfterMs);
}

function asPlugin({ admission, limits }: AccountDeps, routes: readonly (FastifyPluginAsync | FastifyPluginAsyncZod)[]): FastifyPluginAsync {
  return async (app) => {
    admitRequests(app, admission, limits.bodyBytes);
    app.addHook('onRequest', (_request, reply, done) => {
      // A new key is shown once, and amounts change.
      reply.header('cache-control', 'no-store');
      done();
    });
    // Without a body there is a field missing, or none is needed.
    parseJsonBodies(app, { limitBytes: limits.bodyBytes, ...countedByAdmission, mayBeEmpty: true });
    for (const route of routes) await app.register(route as FastifyPluginAsync);
  };
}
