import { usdOfNano } from '#shared/credit/nano-usd.ts';
import { type CurrentSpend, currentSpend, type KeySpend, remainingNano, type SpendWindows } from '#shared/credit/spend-windows.ts';
import type { CallerKey } from '#shared/keys/caller-key.ts';
import type { KeyRow, KeyWithSpend } from './key-rows.ts';
import { WORKSPACE } from './key-schemas.ts';

/** Amounts are US dollars. There are no provider keys of callers: what is spent on such is 0. */
interface UsageFields {
  usage: number;
  usage_daily: number;
  usage_weekly: number;
  usage_monthly: number;
  byok_usage: 0;
  byok_usage_daily: 0;
  byok_usage_weekly: 0;
  byok_usage_monthly: 0;
}

interface LimitFields {
  limit: number | null;
  limit_remaining: number | null;
  limit_reset: CallerKey['limitReset'];
}

/** A key in responses of `/keys`. All fields of the contract's clients are present; those behind `workspace_id` are our own. */
export interface KeyRecord extends UsageFields, LimitFields {
  hash: string;
  name: string;
  label: string;
  disabled: boolean;
  include_byok_in_limit: boolean;
  created_at: string;
  updated_at: string | null;
  expires_at: string | null;
  creator_user_id: string | null;
  external_user: null;
  workspace_id: typeof WORKSPACE;
  owner_email: string | null;
  requests_per_minute: number | null;
  tokens_per_minute: number | null;
  calls_at_once: number | null;
  is_management_key: boolean;
  /** Since when it is known to be exposed; null: it is not, or it was enabled again since. */
  exposed_at: string | null;
  exposed_where: string | null;
}

/** The calling key in responses of `/key`. */
export interface CallingKeyRecord extends UsageFields, LimitFields {
  label: string;
  include_byok_in_limit: boolean;
  is_free_tier: false;
  is_management_key: boolean;
  is_provisioning_key: boolean;
  creator_user_id: string | null;
  expires_at: string | null;
  organization_id: null;
  workspace_id: typeof WORKSPACE;
  allowed_data_regions: [];
  free_model_daily_requests: { limit: number; used: number; remaining: number };
  rate_limit: { requests: number; interval: string; note: string };
}

export function keyRecordOf({ key, spend }: KeyWithSpend, windows: SpendWindows): KeyRecord {
  return {
    hash: key.hash,
    name: key.name,
    label: key.label,
    disabled: key.disabled,
    ...amountsOf(key, spend, windows),
    include_byok_in_limit: key.includeByokInLimit,
    created_at: key.createdAt.toISOString(),
    updated_at: key.updatedAt?.toISOString() ?? null,
    expires_at: key.expiresAt?.toISOString() ?? null,
    creator_user_id: key.creatorUserId,
    external_user: null,
    workspace_id: WORKSPACE,
    owner_email: key.ownerEmail,
    requests_per_minute: key.requestsPerMinute,
    tokens_per_minute: key.tokensPerMinute,
    calls_at_once: key.callsAtOnce,
    is_management_key: key.isManagement,
    exposed_at: key.exposedAt?.toISOString() ?? null,
    exposed_where: key.exposedWhere,
  };
}

/** A count without a limit. */
const UNLIMITED = -1;

export function callingKeyRecordOf({ key, spend }: KeyWithSpend, windows: SpendWindows): CallingKeyRecord {
  const { isManagement, label, requestsPerMinute, includeByokInLimit, creatorUserId, expiresAt } = key;
  return {
    label,
    ...amountsOf(key, spend, windows),
    include_byok_in_limit: includeByokInLimit,
    is_free_tier: false,
    is_management_key: isManagement,
    is_provisioning_key: isManagement,
    creator_user_id: creatorUserId,
    expires_at: expiresAt?.toISOString() ?? null,
    organization_id: null,
    workspace_id: WORKSPACE,
    allowed_data_regions: [],
    free_model_daily_requests: { limit: UNLIMITED, used: 0, remaining: UNLIMITED },
    rate_limit: { requests: requestsPerMinute ?? UNLIMITED, interval: '1m', note: 'requests per interval; -1: no limit' },
  };
}

function amountsOf(key: KeyRow, stored: KeySpend | null, windows: SpendWindows): UsageFields & LimitFields {
  const spend = currentSpend(stored, windows);
  const remaining = remainingNano(key, spend);
  return {
    limit: key.limitNano === null ? null : usdOfNano(key.limitNano),
    limit_remaining: remaining === null ? null : usdOfNano(remaining),
    limit_reset: key.limitReset,
    ...usageOf(spend),
  };
}

function usageOf({ totalNano, dayNano, weekNano, monthNano }: CurrentSpend): UsageFields {
  return {
    usage: usdOfNano(totalNano),
    usage_daily: usdOfNano(dayNano),
    usage_weekly: usdOfNano(weekNano),
    usage_monthly: usdOfNano(monthNano),
    byok_usage: 0,
    byok_usage_daily: 0,
    byok_usage_weekly: 0,
    byok_usage_monthly: 0,
  };
}
