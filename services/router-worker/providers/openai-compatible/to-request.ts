import type { ChatMessage, ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ProviderCall } from '../provider.ts';

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

/** Fields of our answers that upstreams refuse, or must not see, when a client sends them back. */
const MESSAGE_ONLY_OURS: ReadonlySet<string> = new Set(['reasoning', 'reasoning_content', 'reasoning_details', 'annotations', 'images']);

/** Reasoning budget as a share of all tokens. */
const EFFORT_SHARES = { minimal: 0.1, low: 0.2, medium: 0.5, high: 0.8, xhigh: 0.95 } as const;

/** The upstream request body: always streamed, always with usage. */
export function toRequest({ model, request }: Pick<ProviderCall, 'model' | 'request'>, compatibility: ParameterCompatibility): Record<string, unknown> {
  const body: Record<string, unknown> = { model };
  for (const [name, value] of Object.entries(request)) {
    if (value !== null && value !== undefined && !ROUTER_ONLY.has(name)) body[name] = value;
  }
  body.model = model;
  body.messages = request.messages.map(toMessage);
  if (request.tools !== undefined) body.tools = request.tools.map(withoutCacheControl);
  body.stream = true;
  body.stream_options = request.stream_options === undefined ? { include_usage: true } : { ...request.stream_options, include_usage: true };
  const maxTokens = request.max_completion_tokens ?? request.max_tokens ?? null;
  if (maxTokens !== null) body[compatibility.maxTokensField] = maxTokens;
  const effort = effortOf(request, maxTokens);
  if (effort !== null) body.reasoning_effort ??= effort;
  for (const name of compatibility.refused) delete body[name];
  return body;
}

/** `developer` becomes `system`, which every server understands. */
function toMessage(message: ChatMessage): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(message)) {
    if (MESSAGE_ONLY_OURS.has(name) || value === undefined || (value === null && name !== 'content')) continue;
    copy[name] = name === 'content' && Array.isArray(value) ? value.map(withoutCacheControl) : value;
  }
  if (message.role === 'developer') copy.role = 'system';
  // Some servers require `content: null` beside tool calls.
  if (message.role === 'assistant') copy.content ??= null;
  return copy;
}

function withoutCacheControl(item: unknown): unknown {
  if (typeof item !== 'object' || item === null || !('cache_control' in item)) return item;
  const { cache_control: _, ...rest } = item;
  return rest;
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
