import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ProviderCall } from '../provider.ts';
import type { Extension } from './extensions.ts';
import { toMessage, withoutCacheControl } from './to-message.ts';

/** What an upstream model accepts; the adapter learns it from errors. */
export interface ParameterCompatibility {
  /** OpenAI's reasoning models refuse `max_tokens`; most other servers know nothing else. */
  maxTokensField: 'max_tokens' | 'max_completion_tokens';
  refused: ReadonlySet<string>;
}

/**
 * Fields that mean nothing, or something else, upstream. `n` asks for several answers where we serve one; OpenAI refuses `metadata` for requests that it
 * doesn't store. Unknown fields are passed on.
 */
const ROUTER_ONLY: ReadonlySet<string> = new Set([
  'provider',
  'plugins',
  'models',
  'route',
  'session_id',
  'debug',
  'trace',
  'transforms',
  'metadata',
  'cache_control',
  'provider_options',
  'include_reasoning',
  'reasoning',
  'usage',
  'n',
  'max_tokens',
  'max_completion_tokens',
]);

/** What is known of the upstream. */
export interface UpstreamTraits {
  /** The provider's, whose `provider_options` are sent. */
  slug: string;
  extensions: ReadonlySet<Extension>;
}

/** Reasoning budget as a share of all tokens. */
const EFFORT_SHARES = { minimal: 0.1, low: 0.2, medium: 0.5, high: 0.8, xhigh: 0.95 } as const;

/** The upstream request body: always streamed, always with usage. */
export function toRequest(
  { model, request }: Pick<ProviderCall, 'model' | 'request'>,
  compatibility: ParameterCompatibility,
  { slug, extensions }: UpstreamTraits,
): Record<string, unknown> {
  const body: Record<string, unknown> = { model };
  for (const [name, value] of Object.entries(request)) {
    if (value !== null && value !== undefined && !ROUTER_ONLY.has(name)) body[name] = value;
  }
  const own = ownOptions(request, slug);
  for (const name in own) if (!ROUTER_ONLY.has(name)) body[name] = own[name];
  const marks = extensions.has('cache_control');
  if (marks && request.cache_control) body.cache_control = request.cache_control;
  body.model = model;
  body.messages = request.messages.map((message) => toMessage(message, extensions));
  if (request.tools !== undefined) body.tools = marks ? request.tools : request.tools.map(withoutCacheControl);
  body.stream = true;
  body.stream_options = request.stream_options === undefined ? { include_usage: true } : { ...request.stream_options, include_usage: true };
  const maxTokens = request.max_completion_tokens ?? request.max_tokens ?? null;
  if (maxTokens !== null) body[compatibility.maxTokensField] = maxTokens;
  const effort = effortOf(request, maxTokens);
  if (extensions.has('reasoning')) stateReasoning(body, request);
  else if (effort !== null) body.reasoning_effort ??= effort;
  for (const name of compatibility.refused) delete body[name];
  return body;
}

/** Of this provider alone; they overrule the request's fields, but not what the router decides. */
function ownOptions({ provider_options: options }: ChatRequest, slug: string): Record<string, unknown> {
  return options && Object.hasOwn(options, slug) ? (options[slug] ?? {}) : {};
}

/** As the object, which overrules the other two forms. */
function stateReasoning(body: Record<string, unknown>, { reasoning, reasoning_effort: effort, include_reasoning: included }: ChatRequest): void {
  if (reasoning === undefined && !effort && included !== true) return;
  // Excluded reasoning is left out of the answer here, and counted.
  const { exclude: _, ...asked } = reasoning ?? {};
  delete body.reasoning_effort;
  body.reasoning = { ...(effort && { effort }), ...asked };
}

/** `reasoning` as an effort; null when unset. A token budget becomes the nearest effort. */
function effortOf({ reasoning }: ChatRequest, maxTokens: number | null): string | null {
  if (!reasoning) return null;
  if (reasoning.effort) return reasoning.effort;
  if (reasoning.enabled === false) return 'none';
  if (reasoning.max_tokens && maxTokens !== null) return nearestEffort(reasoning.max_tokens / maxTokens);
  return reasoning.enabled || reasoning.max_tokens ? 'medium' : null;
}

function nearestEffort(share: number): string {
  let nearest = 'medium';
  let distance = Number.POSITIVE_INFINITY;
  for (const [effort, of] of Object.entries(EFFORT_SHARES)) {
    if (Math.abs(of - share) >= distance) continue;
    nearest = effort;
    distance = Math.abs(of - share);
  }
  return nearest;
}
