import type { ChatRequest, ChatTool } from '#shared/contracts/router/chat-request.ts';
import { askedSearch, MAX_NATIVE_SEARCHES } from '#shared/credit/web-searches.ts';
import type { UpstreamRequest } from '../provider.ts';
import { requestedReasoning } from '../reasoning.ts';
import { toInput } from './to-input.ts';

/** Sent as they are. */
const SAME = ['temperature', 'top_p', 'top_logprobs', 'parallel_tool_calls', 'service_tier', 'prompt_cache_key', 'user'] as const;
const ENCRYPTED_REASONING = 'reasoning.encrypted_content';
const LOGPROBS = 'message.output_text.logprobs';

/**
 * The upstream request body: always streamed, and never stored there. Parameters without a counterpart (`stop`, `seed`, `logit_bias`, penalties, `n`) are left
 * out.
 *
 * @param refused parameters that the model does not take
 * @throws `router.provider_refused` naming an item that the API has no form for
 */
export function toRequest({ model, request, searchesWeb = false }: UpstreamRequest, refused: ReadonlySet<string>): Record<string, unknown> {
  const maxTokens = request.max_completion_tokens ?? request.max_tokens ?? null;
  const fields: Record<string, unknown> = {
    model,
    input: toInput(request.messages),
    max_output_tokens: maxTokens,
    ...Object.fromEntries(SAME.map((name) => [name, request[name]])),
    tools: toolsOf(request, searchesWeb),
    max_tool_calls: searchesWeb ? MAX_NATIVE_SEARCHES : null,
    tool_choice: choiceOf(request),
    text: textOf(request),
    reasoning: reasoningOf(request, maxTokens),
    include: request.logprobs === true ? [ENCRYPTED_REASONING, LOGPROBS] : [ENCRYPTED_REASONING],
    store: false,
    stream: true,
  };
  return Object.fromEntries(Object.entries(fields).filter(([name, value]) => value !== null && value !== undefined && !refused.has(name)));
}

function toolsOf(request: ChatRequest, searchesWeb: boolean): object[] | null {
  const all = [...(request.tools ?? []).map(toTool), ...(searchesWeb ? [searchTool(request)] : [])];
  return all.length === 0 ? null : all;
}

function searchTool(request: ChatRequest): object {
  const { include_domains: included, user_location: location } = askedSearch(request)?.limits ?? {};
  return { type: 'web_search', ...(included && { filters: { allowed_domains: included } }), ...(location && { user_location: location }) };
}

/** Without `strict` the API takes a schema for a strict one. */
function toTool({ function: { name, description, parameters, strict } }: ChatTool): object {
  return {
    type: 'function',
    name,
    ...(description === undefined ? {} : { description }),
    parameters: parameters ?? { type: 'object', properties: {} },
    strict: strict === true,
  };
}

function choiceOf({ tool_choice: choice, tools = [] }: ChatRequest): unknown {
  if (choice === undefined || tools.length === 0) return null;
  return typeof choice === 'string' ? choice : { type: 'function', name: choice.function.name };
}

function textOf({ response_format: format, verbosity }: ChatRequest): object | null {
  const text: Record<string, unknown> = typeof verbosity === 'string' ? { verbosity } : {};
  if (format?.type === 'json_object') text.format = { type: 'json_object' };
  if (format?.type === 'json_schema') {
    const { name, description, schema, strict } = format.json_schema;
    text.format = { type: 'json_schema', name, ...(description === undefined ? {} : { description }), schema: schema ?? {}, strict: strict === true };
  }
  return Object.keys(text).length === 0 ? null : text;
}

function reasoningOf(request: ChatRequest, maxTokens: number | null): object | null {
  const requested = requestedReasoning(request, maxTokens);
  const { summary = null, exclude = null } = request.reasoning ?? {};
  if (requested === null) return summary === null ? null : { summary };
  if (requested.isOff) return { effort: 'none' };
  // `max` is the name of other vendors.
  const effort = requested.effort === 'max' ? 'xhigh' : requested.effort;
  return exclude === true ? { effort } : { effort, summary: summary ?? 'auto' };
}
