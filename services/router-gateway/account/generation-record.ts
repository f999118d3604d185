import type { UsageAttempt, UsageRecord } from '#bus/messages/usage.ts';
import { usdOfNano } from '#shared/credit/nano-usd.ts';
import { errorCatalogue } from '#shared/errors/switchyard-error.ts';
import { type GenerationRouting, routingOf } from './generation-routing.ts';
import { WORKSPACE } from './key-schemas.ts';

/** Clients require a model. */
const MODEL_UNKNOWN = 'unknown';

/** `api_type` of each API, in the words of its clients. */
const apiTypes: Readonly<Record<string, string>> = {
  'chat-completions': 'completions',
  parts: 'completions',
  responses: 'completions',
  embeddings: 'embeddings',
};

/** One try of the call. What the operator paid for it is only for management keys. */
interface ProviderResponse {
  /** `<model id>@<tag>`, as in `routing`; absent: nothing was to decide, or it is not known. */
  endpoint_id?: string;
  provider_name: string;
  model_permaslug: string;
  status: number;
  /** Of the error; absent: it answered. */
  error_type?: string;
  /** Until the first content; absent: none came. */
  latency?: number;
  generation_time: number;
  is_byok: false;
  cost?: number;
}

/** The `data` of GET /generation. Amounts are US dollars, times milliseconds. Null: not known, or there is no such thing here. */
export interface GenerationRecord {
  id: string;
  upstream_id: string | null;
  model: string;
  provider_name: string | null;
  created_at: string;
  streamed: boolean;
  cancelled: boolean;
  finish_reason: string | null;
  native_finish_reason: string | null;
  latency: number | null;
  generation_time: number;
  moderation_latency: null;
  tokens_prompt: number;
  tokens_completion: number;
  native_tokens_prompt: number | null;
  native_tokens_completion: number | null;
  native_tokens_reasoning: number | null;
  native_tokens_cached: number | null;
  native_tokens_cache_write: number | null;
  /** Part of those: kept for an hour. */
  native_tokens_cache_write_1h: number | null;
  native_tokens_completion_images: null;
  num_media_prompt: null;
  num_media_completion: null;
  num_input_audio_prompt: null;
  /** Pages that an engine of the router found. */
  num_search_results: number | null;
  /** Of the web, beside the fields that clients know. */
  num_searches: number | null;
  num_fetches: null;
  total_cost: number;
  usage: number;
  cache_discount: null;
  upstream_inference_cost: number | null;
  is_byok: false;
  origin: '';
  http_referer: null;
  user_agent: null;
  app_id: null;
  external_user: string | null;
  api_type: string | null;
  router: null;
  provider_responses: ProviderResponse[];
  session_id: string | null;
  request_id: null;
  service_tier: string | null;
  /** `native`: the provider's own. */
  web_search_engine: string | null;
  preset_id: null;
  workspace_id: typeof WORKSPACE;
  data_region: 'global';
  response_cache_source_id: null;
  metadata: Record<string, string> | null;
  /** Null: no decision was made, or a worker of an older release made it. */
  routing: GenerationRouting | null;
}

/** @param forManagement adds what each attempt cost the operator */
export function generationRecordOf(record: UsageRecord, forManagement: boolean): GenerationRecord {
  const { attempts, tokens, costNano, createdAtMs, endedAtMs } = record;
  const native = (count: number) => (record.estimated ? null : count);
  const first = attempts.find(({ firstTokenMs }) => firstTokenMs !== null);
  const { decision } = record;
  const costs = attempts.flatMap((attempt) => attempt.costNano ?? []);
  return {
    id: record.generationId,
    upstream_id: record.upstreamId,
    model: record.model ?? MODEL_UNKNOWN,
    provider_name: record.providerName,
    created_at: new Date(createdAtMs).toISOString(),
    streamed: record.streamed,
    cancelled: record.cancelled,
    finish_reason: record.finishReason,
    native_finish_reason: record.nativeFinishReason,
    latency: first === undefined ? null : Math.max(0, first.startedAtMs + (first.firstTokenMs ?? 0) - createdAtMs),
    generation_time: Math.max(0, endedAtMs - createdAtMs),
    moderation_latency: null,
    tokens_prompt: tokens.prompt,
    tokens_completion: tokens.completion,
    native_tokens_prompt: native(tokens.prompt),
    native_tokens_completion: native(tokens.completion),
    native_tokens_reasoning: native(tokens.reasoning),
    native_tokens_cached: native(tokens.cached),
    native_tokens_cache_write: native(tokens.cacheWrite),
    native_tokens_cache_write_1h: native(tokens.cacheWrite1h ?? 0),
    native_tokens_completion_images: null,
    num_media_prompt: null,
    num_media_completion: null,
    num_input_audio_prompt: null,
    num_search_results: record.searchResults ?? null,
    num_searches: record.searches ?? null,
    num_fetches: null,
    total_cost: usdOfNano(costNano),
    usage: usdOfNano(costNano),
    cache_discount: null,
    upstream_inference_cost: forManagement && costs.length > 0 ? usdOfNano(costs.reduce((sum, cost) => sum + cost, 0)) : null,
    is_byok: false,
    origin: '',
    http_referer: null,
    user_agent: null,
    app_id: null,
    external_user: record.user,
    api_type: apiTypes[record.surface] ?? null,
    router: null,
    provider_responses: attempts.map((attempt, at) => providerResponseOf(attempt, decision?.candidates[decision.tried[at] ?? -1]?.endpoint, forManagement)),
    session_id: record.sessionId,
    request_id: null,
    service_tier: record.serviceTier,
    web_search_engine: record.searchEngine ?? null,
    preset_id: null,
    workspace_id: WORKSPACE,
    data_region: 'global',
    response_cache_source_id: null,
    metadata: record.metadata,
    routing: routingOf(record),
  };
}

function providerResponseOf(attempt: UsageAttempt, endpoint: string | undefined, forManagement: boolean): ProviderResponse {
  const { providerName, model, status, code, firstTokenMs, durationMs, costNano } = attempt;
  return {
    ...(endpoint !== undefined && { endpoint_id: endpoint }),
    provider_name: providerName,
    model_permaslug: model,
    status,
    ...(code !== null && { error_type: errorTypeOf(code) }),
    ...(firstTokenMs !== null && { latency: firstTokenMs }),
    generation_time: durationMs,
    is_byok: false,
    ...(forManagement && costNano !== null && { cost: usdOfNano(costNano) }),
  };
}

/** Of a code of a newer release: `unmapped`. */
function errorTypeOf(code: string): string {
  return Object.hasOwn(errorCatalogue, code) ? errorCatalogue[code as keyof typeof errorCatalogue].routerType : 'unmapped';
}
