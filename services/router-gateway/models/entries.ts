import { parametersOfKind, sendsParameter } from '#shared/config/kind-parameters.ts';
import { serves } from '#shared/config/model-kinds.ts';
import type { EndpointConfig, ModelConfig } from '#shared/config/router-config.ts';
import type { EndpointEntry } from '#shared/contracts/router/model-endpoints.ts';
import type { ModelEntry, ModelPricing } from '#shared/contracts/router/model-list.ts';
import { pricePerToken } from '../price-per-token.ts';
import type { Measured } from './measured.ts';

/** Clients require a number. */
export const CREATED_UNKNOWN = 0;
/** `0` would mean free. */
const PRICE_UNKNOWN = '-1';
const TOKENIZER_UNKNOWN = 'Other';
/** Clients require a number. */
const CONTEXT_UNKNOWN = 0;

/** Of an endpoint that does not list its own, at a provider that may take any. */
const ALL_PARAMETERS = [
  'frequency_penalty',
  'logit_bias',
  'logprobs',
  'max_completion_tokens',
  'max_tokens',
  'parallel_tool_calls',
  'presence_penalty',
  'reasoning',
  'response_format',
  'seed',
  'stop',
  'temperature',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
];

/** By the provider's slug. Of one that the configuration lacks: undefined. */
export type KindOf = (provider: string) => string | undefined;

/** Prices and limits of the first endpoint; parameters that any endpoint supports. */
export function modelEntry(model: ModelConfig, kindOf: KindOf): ModelEntry {
  const { id, name, description, created, endpoints } = model;
  const chats = serves(model, 'chat');
  const [first] = endpoints;
  const lengths = endpoints.flatMap(({ context_length }) => context_length ?? []);
  return {
    id,
    object: 'model',
    owned_by: id.split('/', 1)[0] ?? id,
    canonical_slug: id,
    name: name ?? id,
    created: created === undefined ? CREATED_UNKNOWN : Date.parse(created) / 1_000,
    description,
    context_length: lengths.length === 0 ? null : Math.max(...lengths),
    architecture: architectureOf(endpoints, chats),
    pricing: pricingOf(first?.prices),
    top_provider: { context_length: first?.context_length ?? null, max_completion_tokens: first?.max_completion_tokens ?? null, is_moderated: false },
    per_request_limits: null,
    supported_parameters: [...new Set(endpoints.flatMap((endpoint) => parametersOf(endpoint, kindOf, chats)))].sort(),
    default_parameters: null,
    supported_voices: null,
    links: { details: `/api/v1/models/${id}/endpoints` },
  };
}

/** @param measured null: nothing is known */
export function endpointEntry(
  model: ModelConfig,
  endpoint: EndpointConfig,
  provider: { name: string; kindOf: KindOf },
  measured: Measured | null,
): EndpointEntry {
  const { name: providerName, kindOf } = provider;
  const { id, name = id } = model;
  const chats = serves(model, 'chat');
  return {
    name: `${providerName} | ${name}`,
    model_id: id,
    model_name: name,
    provider_name: providerName,
    tag: endpoint.tag ?? endpoint.provider,
    context_length: endpoint.context_length ?? CONTEXT_UNKNOWN,
    pricing: pricingOf(endpoint.prices),
    quantization: endpoint.quantization ?? null,
    max_completion_tokens: endpoint.max_completion_tokens ?? null,
    max_prompt_tokens: null,
    supported_parameters: parametersOf(endpoint, kindOf, chats),
    status: measured?.status ?? 0,
    uptime_last_30m: measured?.uptime.last30m ?? null,
    uptime_last_5m: measured?.uptime.last5m ?? null,
    uptime_last_1d: measured?.uptime.last1d ?? null,
    supports_implicit_caching: endpoint.prices?.cached_prompt !== undefined,
    supports_tool_choice: toolChoiceOf(endpoint, chats),
    latency_last_30m: measured?.latencyMs ?? null,
    throughput_last_30m: measured?.tokensPerSecond ?? null,
  };
}

/** Of a chat's: a call for vectors has none of them. What an endpoint lists and its provider's adapter can't send has no effect. */
function parametersOf({ provider, supported_parameters: supported }: EndpointConfig, kindOf: KindOf, chats: boolean): string[] {
  if (!chats) return [];
  const kind = kindOf(provider) ?? '';
  return (supported ?? parametersOfKind(kind) ?? ALL_PARAMETERS).filter((name) => sendsParameter(kind, name)).toSorted();
}

/** What any endpoint declares beside text. Answers of a chat are listed as text: endpoints declare nothing of them. */
function architectureOf(endpoints: readonly EndpointConfig[], chats: boolean): ModelEntry['architecture'] {
  const inputs = [...new Set(['text', ...endpoints.flatMap(({ modalities }) => modalities ?? [])])];
  const output = chats ? 'text' : 'embeddings';
  return {
    modality: `${inputs.join('+')}->${output}`,
    input_modalities: inputs,
    output_modalities: [output],
    tokenizer: TOKENIZER_UNKNOWN,
    instruct_type: null,
  };
}

/** Tool choice needs tools. */
function toolChoiceOf({ supported_parameters: supported }: EndpointConfig, chats: boolean): EndpointEntry['supports_tool_choice'] {
  const does = chats && (supported === undefined || (supported.includes('tools') && supported.includes('tool_choice')));
  return { none: does, auto: does, required: does, function: does };
}

function pricingOf(prices: EndpointConfig['prices']): ModelPricing {
  if (prices === undefined) return { prompt: PRICE_UNKNOWN, completion: PRICE_UNKNOWN };
  return {
    prompt: pricePerToken(prices.prompt),
    completion: pricePerToken(prices.completion),
    // Not per token: USD per call, picture, recording and search, in the configuration too.
    ...(prices.request !== undefined && { request: prices.request }),
    ...(prices.image !== undefined && { image: prices.image }),
    ...(prices.audio !== undefined && { audio: prices.audio }),
    ...(prices.web_search !== undefined && { web_search: prices.web_search }),
    ...(prices.cached_prompt !== undefined && { input_cache_read: pricePerToken(prices.cached_prompt) }),
    ...(prices.cache_write !== undefined && { input_cache_write: pricePerToken(prices.cache_write) }),
    ...(prices.cache_write_1h !== undefined && { input_cache_write_1h: pricePerToken(prices.cache_write_1h) }),
  };
}
