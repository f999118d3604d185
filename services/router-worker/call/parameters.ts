import { isDoneWithout, sendsParameter, takesOptions } from '#shared/config/kind-parameters.ts';
import type { EndpointConfig } from '#shared/config/router-config.ts';
import { type ChatRequest, chatRequest } from '#shared/contracts/router/chat-request.ts';
import { PRICED_FIELDS } from '#shared/contracts/router/priced-fields.ts';
import { isUnpriced } from '#shared/credit/service-tiers.ts';
import { withMessagesOf } from '#shared/prompts/deferred-messages.ts';
import { isParameter, neededParameters } from '#shared/prompts/needed-parameters.ts';
import type { ModelEndpoint } from './model-endpoint.ts';

/** Without effect unless the other is there. */
const SERVES: Readonly<Record<string, string>> = { tool_choice: 'tools', parallel_tool_calls: 'tools', top_logprobs: 'logprobs' };
const TOKEN_LIMITS = ['max_tokens', 'max_completion_tokens'] as const;

type Endpoint = Pick<ModelEndpoint, 'endpoint'> & { provider: Pick<ModelEndpoint['provider'], 'kind'> };

/** Whether an endpoint has the request's parameter: its list, if it has one, and the adapter of its provider. */
export function supportsParameter({ endpoint, provider: { kind } }: Endpoint, parameter: string, request: ChatRequest): boolean {
  if (parameter !== 'response_format') return lists(endpoint, parameter) && sendsParameter(kind, parameter, request[parameter]);
  return supportsFormat(endpoint, request) && sendsParameter(kind, formatParameter(request));
}

/** What few APIs have is a parameter of its own. */
function formatParameter({ response_format: format }: ChatRequest): string {
  return format?.type === 'grammar' || format?.type === 'python' ? format.type : 'response_format';
}

function lists({ supported_parameters: supported }: EndpointConfig, parameter: string): boolean {
  if (supported === undefined || supported.includes(parameter)) return true;
  if (parameter === 'reasoning' || parameter === 'reasoning_effort') return supported.includes('reasoning') || supported.includes('reasoning_effort');
  return isTokenLimit(parameter) && TOKEN_LIMITS.some((name) => supported.includes(name));
}

function supportsFormat(endpoint: EndpointConfig, { response_format: format }: ChatRequest): boolean {
  const { response_formats: formats, supported_parameters: supported } = endpoint;
  if (format === undefined) return true;
  if (formats !== undefined) return format.type === 'text' ? formats.length > 0 : formats.includes(format.type);
  // Few servers have these two, and others ignore them or fail.
  if (format.type === 'grammar' || format.type === 'python') return supported?.includes(format.type) ?? false;
  return lists(endpoint, 'response_format') || lists(endpoint, 'structured_outputs');
}

export function supportsAll(endpoint: Endpoint, request: ChatRequest, needed = neededParameters(request)): boolean {
  return needed.every((name) => isDoneWithout(endpoint.provider.kind, name, request[name]) || supportsParameter(endpoint, name, request));
}

/** The request for an endpoint: without unsupported parameters, limited to the lowest of the caller's, the call's and the endpoint's token limits. */
export function requestFor(modelEndpoint: Endpoint, given: ChatRequest, maxTokens: number | null, isReserved = false): ChatRequest {
  const request = withAllowedTier(modelEndpoint, withDecidedOptions(modelEndpoint, given, isReserved), isReserved);
  const { endpoint, provider } = modelEndpoint;
  if (endpoint.supported_parameters === undefined && maxTokens === null && request.response_format === undefined && isSet(request, provider.kind))
    return request;
  const isDropped = (name: string) =>
    isParameter(name) && (!supportsParameter(modelEndpoint, name, request) || !supportsParameter(modelEndpoint, SERVES[name] ?? name, request));
  // Messages stay deferred.
  const others = Object.keys(request).filter((name) => name !== 'messages' && !isTokenLimit(name) && !isDropped(name));
  const rest = others.map((name): [string, unknown] => [name, request[name]]).filter(([, value]) => value !== null && value !== undefined);
  const limit = tokenLimit(endpoint, request, maxTokens);
  const field = tokenLimitField(endpoint, request);
  if (limit !== null && field !== null) rest.push([field, limit]);
  return withMessagesOf(request, Object.fromEntries(rest));
}

/** For a call whose cost is reserved, without a tier that the endpoint has no price of: it could cost more than was reserved, and than is billed. */
function withAllowedTier({ endpoint: { prices } }: Endpoint, request: ChatRequest, isReserved: boolean): ChatRequest {
  if (!isReserved || !isUnpriced(request.service_tier ?? undefined, prices)) return request;
  const { service_tier: _, messages: __, ...rest } = request;
  return withMessagesOf(request, rest);
}

/**
 * The request with the provider's own options in so far as the endpoint takes them. Of these, fields that what a call costs depends on become the request's, too;
 * as options they still overrule what the provider's profile leaves out.
 */
function withDecidedOptions({ endpoint, provider: { kind } }: Endpoint, request: ChatRequest, isReserved: boolean): ChatRequest {
  const { provider_options: options } = request;
  const own = options && Object.hasOwn(options, endpoint.provider) ? options[endpoint.provider] : undefined;
  if (!own || !takesOptions(kind)) return request;
  const stated = PRICED_FIELDS.flatMap((name): [string, unknown][] => (own[name] === undefined || own[name] === null ? [] : [[name, own[name]]]));
  const isUnallowed = (name: string, value: unknown) => name === 'service_tier' && isReserved && isUnpriced(value, endpoint.prices);
  const isEmpty = (name: string, value: unknown) => value === null && PRICED_FIELDS.some((priced) => priced === name);
  const isKept = ([name, value]: [string, unknown]) => (!isKnown(name) || lists(endpoint, name)) && !isUnallowed(name, value) && !isEmpty(name, value);
  const kept = Object.fromEntries(Object.entries(own).filter(isKept));
  const { messages: _, ...rest } = request;
  return withMessagesOf(request, { ...rest, ...Object.fromEntries(stated), provider_options: { ...options, [endpoint.provider]: kept } });
}

function isKnown(name: string): boolean {
  return Object.hasOwn(chatRequest.shape, name) && isParameter(name);
}

/** Whether there is no empty field, no token limit and nothing that the adapter lacks: an endpoint that supports everything then takes the request unchanged. */
function isSet(request: ChatRequest, kind: string): boolean {
  for (const name in request) {
    if (name === 'messages') continue;
    const value = request[name];
    if (value === null || value === undefined || isTokenLimit(name)) return false;
    if (isParameter(name) && !sendsParameter(kind, name, value)) return false;
  }
  return true;
}

function tokenLimit({ max_completion_tokens: most, context_length: context }: EndpointConfig, request: ChatRequest, maxTokens: number | null): number | null {
  const asked = request.max_completion_tokens ?? request.max_tokens ?? null;
  // Some servers refuse a limit larger than their context, so a ceiling of ours above it is not sent.
  const ceiling = maxTokens !== null && context !== undefined && maxTokens >= context ? null : maxTokens;
  const limits = [asked, ceiling].filter((limit) => limit !== null);
  return limits.length === 0 ? null : Math.min(...limits, most ?? Number.POSITIVE_INFINITY);
}

/** The supported name; where both are, the caller's. */
function tokenLimitField({ supported_parameters: supported }: EndpointConfig, request: ChatRequest): (typeof TOKEN_LIMITS)[number] | null {
  const called = request.max_completion_tokens ? 'max_completion_tokens' : 'max_tokens';
  if (supported === undefined || supported.includes(called)) return called;
  return TOKEN_LIMITS.find((name) => supported.includes(name)) ?? null;
}

function isTokenLimit(name: string): boolean {
  return TOKEN_LIMITS.some((limit) => limit === name);
}
