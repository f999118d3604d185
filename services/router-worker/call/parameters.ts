import type { EndpointConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { withMessagesOf } from '#shared/prompts/deferred-messages.ts';

/** Fields that say what is asked or how it is routed; all others tune the model and need the endpoint's support. */
const NOT_PARAMETERS: ReadonlySet<string> = new Set([
  'messages',
  'model',
  'models',
  'provider',
  'plugins',
  'route',
  'user',
  'session_id',
  'metadata',
  'stream',
  'stream_options',
  'debug',
  'trace',
  'transforms',
  'usage',
  'cache_control',
  'include_reasoning',
  'prompt_cache_key',
  'safety_identifier',
  'provider_options',
]);
/** Without effect unless the other is there. */
const SERVES: Readonly<Record<string, string>> = { tool_choice: 'tools', parallel_tool_calls: 'tools', top_logprobs: 'logprobs' };
const TOKEN_LIMITS = ['max_tokens', 'max_completion_tokens'] as const;

/** Whether an endpoint has the request's parameter. One without a list supports everything. */
export function supportsParameter(endpoint: EndpointConfig, parameter: string, request: ChatRequest): boolean {
  return parameter === 'response_format' ? supportsFormat(endpoint, request) : lists(endpoint, parameter);
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

export function supportsAll(endpoint: EndpointConfig, request: ChatRequest, needed = neededParameters(request)): boolean {
  return needed.every((name) => supportsParameter(endpoint, name, request));
}

/** What a request asks for beside what every endpoint does. */
export function neededParameters(request: ChatRequest): readonly string[] {
  return Object.keys(request).filter((name) => !NOT_PARAMETERS.has(name) && request[name] !== null && request[name] !== undefined && !isDefault(name, request));
}

/** Asks for what every endpoint does. */
function isDefault(name: string, { n, modalities, response_format: format }: ChatRequest): boolean {
  switch (name) {
    case 'n':
      return n === 1;
    case 'modalities':
      return modalities?.every((modality) => modality === 'text') ?? true;
    case 'response_format':
      return format?.type === 'text';
    default:
      return false;
  }
}

/** The request for an endpoint: without unsupported parameters, limited to the lowest of the caller's, the call's and the endpoint's token limits. */
export function requestFor(endpoint: EndpointConfig, request: ChatRequest, maxTokens: number | null): ChatRequest {
  if (endpoint.supported_parameters === undefined && maxTokens === null && request.response_format === undefined && isSet(request)) return request;
  const isDropped = (name: string) =>
    !NOT_PARAMETERS.has(name) && (!supportsParameter(endpoint, name, request) || !supportsParameter(endpoint, SERVES[name] ?? name, request));
  // Messages stay deferred.
  const others = Object.keys(request).filter((name) => name !== 'messages' && !isTokenLimit(name) && !isDropped(name));
  const rest = others.map((name): [string, unknown] => [name, request[name]]).filter(([, value]) => value !== null && value !== undefined);
  const limit = tokenLimit(endpoint, request, maxTokens);
  const field = tokenLimitField(endpoint, request);
  if (limit !== null && field !== null) rest.push([field, limit]);
  return withMessagesOf(request, Object.fromEntries(rest));
}

/** Whether there is no empty field and no token limit: an endpoint that supports everything then takes the request unchanged. */
function isSet(request: ChatRequest): boolean {
  for (const name in request) {
    if (name === 'messages') continue;
    const value = request[name];
    if (value === null || value === undefined || isTokenLimit(name)) return false;
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
