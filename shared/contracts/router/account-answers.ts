import { z } from 'zod';

/** What the router's routes of keys, credit and usage answer with, as published in `/openapi.json` and `schemas/`. Amounts are US dollars, times in records of calls milliseconds. */

const time = z.iso.datetime();
const count = z.int();
const nothing = z.null();

const amounts = {
  limit: z.number().nullable(),
  limit_remaining: z.number().nullable(),
  limit_reset: z.enum(['daily', 'weekly', 'monthly']).nullable(),
  usage: z.number(),
  usage_daily: z.number(),
  usage_weekly: z.number(),
  usage_monthly: z.number(),
  byok_usage: z.literal(0),
  byok_usage_daily: z.literal(0),
  byok_usage_weekly: z.literal(0),
  byok_usage_monthly: z.literal(0),
};

export const keyAnswer = z.object({
  hash: z.string(),
  name: z.string(),
  label: z.string(),
  disabled: z.boolean(),
  ...amounts,
  include_byok_in_limit: z.boolean(),
  created_at: time,
  updated_at: time.nullable(),
  expires_at: time.nullable(),
  creator_user_id: z.string().nullable(),
  external_user: nothing,
  workspace_id: z.literal('default'),
  owner_email: z.string().nullable(),
  requests_per_minute: count.nullable(),
  tokens_per_minute: count.nullable(),
  calls_at_once: count.nullable(),
  is_management_key: z.boolean(),
  exposed_at: time.nullable(),
  exposed_where: z.string().nullable(),
});

/** `-1`: no limit. */
export const callingKeyAnswer = z.object({
  label: z.string(),
  ...amounts,
  include_byok_in_limit: z.boolean(),
  is_free_tier: z.literal(false),
  is_management_key: z.boolean(),
  is_provisioning_key: z.boolean(),
  creator_user_id: z.string().nullable(),
  expires_at: time.nullable(),
  organization_id: nothing,
  workspace_id: z.literal('default'),
  allowed_data_regions: z.array(z.string()),
  free_model_daily_requests: z.object({ limit: count, used: count, remaining: count }),
  rate_limit: z.object({ requests: count, interval: z.string(), note: z.string() }),
});

/** `api_key_…`: for management keys. */
export const activityAnswer = z.object({
  date: z.iso.date(),
  model: z.string(),
  model_permaslug: z.string(),
  endpoint_id: z.string(),
  provider_name: z.string(),
  usage: z.number(),
  byok_usage_inference: z.literal(0),
  requests: count,
  prompt_tokens: z.number(),
  completion_tokens: z.number(),
  reasoning_tokens: z.number(),
  api_key_id: z.string().optional(),
  api_key_hash: z.string().nullish(),
  api_key_label: z.string().nullish(),
});

const providerResponse = z.object({
  endpoint_id: z.string().optional(),
  provider_name: z.string(),
  model_permaslug: z.string(),
  status: count,
  error_type: z.string().optional(),
  latency: z.number().optional(),
  generation_time: z.number(),
  is_byok: z.literal(false),
  cost: z.number().optional(),
});

/** Why a call went where it went. Lists are cut off; each total counts all. */
const routing = z.object({
  requested: z.array(z.string()).nullable(),
  strategy: z.string(),
  sorted_by: z.string().nullable(),
  seed: z.string().nullable(),
  endpoints: z.object({
    total: count,
    available: z.array(
      z.object({
        endpoint: z.string(),
        selected: z.boolean(),
        health: z.string().nullable(),
        price: z.number().nullable(),
        weight: z.number().nullable(),
        sticky: z.boolean(),
        slow: z.boolean(),
      }),
    ),
  }),
  excluded: z.array(z.object({ filter: z.string(), total: count, endpoints: z.array(z.string()) })),
});

export const generationAnswer = z.object({
  id: z.string(),
  upstream_id: z.string().nullable(),
  model: z.string(),
  provider_name: z.string().nullable(),
  created_at: time,
  streamed: z.boolean(),
  cancelled: z.boolean(),
  finish_reason: z.string().nullable(),
  native_finish_reason: z.string().nullable(),
  latency: z.number().nullable(),
  generation_time: z.number(),
  moderation_latency: nothing,
  tokens_prompt: count,
  tokens_completion: count,
  native_tokens_prompt: count.nullable(),
  native_tokens_completion: count.nullable(),
  native_tokens_reasoning: count.nullable(),
  native_tokens_cached: count.nullable(),
  native_tokens_cache_write: count.nullable(),
  native_tokens_cache_write_1h: count.nullable(),
  native_tokens_completion_images: nothing,
  num_media_prompt: nothing,
  num_media_completion: nothing,
  num_input_audio_prompt: nothing,
  num_search_results: count.nullable(),
  num_searches: count.nullable(),
  num_fetches: nothing,
  total_cost: z.number(),
  usage: z.number(),
  cache_discount: nothing,
  upstream_inference_cost: z.number().nullable(),
  is_byok: z.literal(false),
  origin: z.literal(''),
  http_referer: nothing,
  user_agent: nothing,
  app_id: nothing,
  external_user: z.string().nullable(),
  api_type: z.string().nullable(),
  router: nothing,
  provider_responses: z.array(providerResponse),
  session_id: z.string().nullable(),
  request_id: nothing,
  service_tier: z.string().nullable(),
  web_search_engine: z.string().nullable(),
  preset_id: nothing,
  workspace_id: z.literal('default'),
  data_region: z.literal('global'),
  response_cache_source_id: nothing,
  metadata: z.record(z.string(), z.string()).nullable(),
  routing: routing.nullable(),
});
