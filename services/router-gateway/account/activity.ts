import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Clock } from '#shared/clock.ts';
import type { Living } from '#shared/config/living.ts';
import { usdOfNano } from '#shared/credit/nano-usd.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CallerKey } from '#shared/keys/caller-key.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { GatewaySetup } from '../gateway-setup.ts';
import { type ActivityRow, readActivity } from './activity-rows.ts';
import { callingKeyOf } from './calling-key.ts';
import { WORKSPACE } from './key-schemas.ts';
import type { KnownKeys } from './known-keys.ts';
import type { AccountLimits } from './limits.ts';

export interface ActivityDeps {
  database: Queryable;
  setup: Living<Pick<GatewaySetup, 'fileKeys' | 'providerNames'>>;
  knownKeys: KnownKeys;
  limits: AccountLimits;
  clock: Clock;
}

/** What entries name beside their rows. */
interface Named {
  /** By slug. */
  providerNames: ReadonlyMap<string, string>;
  /** Keys of the router's file, by id. */
  fileKeyOf: ReadonlyMap<string, CallerKey>;
  withKey: boolean;
}

const DAY_MS = 86_400_000;
/** Clients require a model and a provider, also of calls for which no endpoint was asked. */
const NONE = 'none';

/** One day's calls of a model at a provider. Amounts are US dollars. */
interface ActivityEntry {
  date: string;
  model: string;
  model_permaslug: string;
  endpoint_id: string;
  provider_name: string;
  usage: number;
  byok_usage_inference: 0;
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  reasoning_tokens: number;
  /** For management keys; of a key that was deleted only the id is known. */
  api_key_id?: string;
  api_key_hash?: string | null;
  api_key_label?: string | null;
}

/**
 * GET /activity: what was used in the last 30 UTC days, or on one of them, by day, model and provider. Keys get their own; management keys get all, by key, or
 * one key's.
 */
export function activity(deps: ActivityDeps): FastifyPluginAsyncZod {
  const { database, setup, knownKeys, limits, clock } = deps;
  const querystring = z.object({
    date: z.iso.date().optional(),
    api_key_hash: z.string().optional(),
    workspace_id: z.literal(WORKSPACE).optional(),
  });

  return async (app) => {
    app.get('/activity', { schema: { querystring } }, async (request) => {
      const { query } = request;
      const callerKey = callingKeyOf(request);
      const keyId = await filteredKey(callerKey, query.api_key_hash);
      const rows = await readActivity(database, { ...rangeOf(query.date), keyId, limit: limits.activityRows + 1 });
      if (rows.length > limits.activityRows) {
        const message = `There are more than ${limits.activityRows} entries: ask for one date, or for one key with api_key_hash`;
        throw new SwitchyardError('request.invalid', message, { details: { param: 'date' } });
      }
      const { fileKeys, providerNames } = setup.current();
      const fileKeyOf = new Map([...fileKeys.values()].map((key) => [key.id, key]));
      return { data: rows.map((row) => entryOf(row, { providerNames, fileKeyOf, withKey: callerKey.isManagement })) };
    });
  };

  /** Null: of all keys. */
  async function filteredKey({ id, hash, isManagement }: CallerKey, wanted: string | undefined): Promise<string | null> {
    if (!isManagement) {
      if (wanted === undefined || wanted === hash) return id;
      throw new SwitchyardError('request.forbidden', 'Only a management key may read the activity of other keys');
    }
    if (wanted === undefined) return null;
    const found = await knownKeys.find(wanted);
    if (found === null) throw new SwitchyardError('request.not_found', 'There is no key with this hash');
    return found.key.id;
  }

  function rangeOf(date: string | undefined): { fromMs: number; untilMs: number } {
    const untilMs = (Math.floor(clock.nowMs() / DAY_MS) + 1) * DAY_MS;
    const firstMs = untilMs - limits.activityDays * DAY_MS;
    if (date === undefined) return { fromMs: firstMs, untilMs };
    const fromMs = Date.parse(date);
    if (fromMs >= firstMs && fromMs < untilMs) return { fromMs, untilMs: fromMs + DAY_MS };
    const message = `date must be one of the last ${limits.activityDays} days of UTC`;
    throw new SwitchyardError('request.invalid', message, { details: { param: 'date' } });
  }

  function entryOf(row: ActivityRow, { providerNames, fileKeyOf, withKey }: Named): ActivityEntry {
    const { date, model, provider, keyId, requests, costNano, promptTokens, completionTokens, reasoningTokens } = row;
    const fileKey = fileKeyOf.get(keyId);
    return {
      date,
      model: model ?? NONE,
      model_permaslug: model ?? NONE,
      endpoint_id: `${provider ?? NONE}/${model ?? NONE}`,
      provider_name: provider === null ? NONE : (providerNames.get(provider) ?? provider),
      usage: usdOfNano(costNano),
      byok_usage_inference: 0,
      requests,
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      reasoning_tokens: reasoningTokens,
      ...(withKey && { api_key_id: keyId, api_key_hash: row.hash ?? fileKey?.hash ?? null, api_key_label: row.label ?? fileKey?.label ?? null }),
    };
  }
}
