import type { FastifyPluginAsync } from 'fastify';
import type { Clock } from '#shared/clock.ts';
import { usdOfNano } from '#shared/credit/nano-usd.ts';
import { currentSpend, remainingNano, windowsAt } from '#shared/credit/spend-windows.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { keyScopes } from '../plugins/key-scopes.ts';
import { callingKeyOf } from './calling-key.ts';
import { callingKeyRecordOf } from './key-record.ts';
import type { KeyRows } from './key-rows.ts';
import type { KnownKeys } from './known-keys.ts';
import type { SpendRows } from './spend-rows.ts';

export interface CreditDeps {
  knownKeys: KnownKeys;
  keyRows: KeyRows;
  spendRows: SpendRows;
  clock: Clock;
}

/**
 * GET /key: the calling key. GET /credits, for management keys: `total_usage` is what all keys have spent, deleted ones included; `total_credits` is
 * that and what keys with a limit may still spend.
 */
export function credit({ knownKeys, keyRows, spendRows, clock }: CreditDeps): FastifyPluginAsync {
  return async (app) => {
    app.get('/key', async (request) => {
      const found = await knownKeys.find(callingKeyOf(request).hash);
      // Deleted since its look-up was cached.
      if (found === null) throw new SwitchyardError('request.unauthorized', 'The API key is not valid');
      return { data: callingKeyRecordOf(found, windowsAt(clock.nowMs())) };
    });

    app.get('/credits', { onRequest: keyScopes.managementOnly }, async () => {
      const nowMs = clock.nowMs();
      const windows = windowsAt(nowMs);
      const [spent, ofRows, fileKeys] = await Promise.all([spendRows.totalNano(), keyRows.remainingNano(nowMs), knownKeys.limitedOfFile(nowMs)]);
      const remaining = fileKeys.reduce((sum, { key, spend }) => sum + (remainingNano(key, currentSpend(spend, windows)) ?? 0), ofRows);
      return { data: { total_credits: usdOfNano(spent + remaining), total_usage: usdOfNano(spent) } };
    });
  };
}
