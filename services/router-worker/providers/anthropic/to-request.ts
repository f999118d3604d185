import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { UpstreamRequest } from '../provider.ts';
import type { Message } from './blocks.ts';
import { closedSchema } from './closed-schema.ts';
import { limitBreakpoints } from './limit-breakpoints.ts';
import type { ModelTraits } from './model-traits.ts';
import { cacheControlOf } from './to-blocks.ts';
import { toConversation } from './to-messages.ts';
import { toThinking } from './to-thinking.ts';
import { toTools } from './to-tools.ts';

/** The API requires a limit. Beside the caller's budget of thinking. */
const DEFAULT_MAX_TOKENS = 4_096;
const MAX_TEMPERATURE = 1;
/** The lowest beside thinking. */
const MIN_TOP_P_THINKING = 0.95;
/** Ours by the API's. */
const SERVICE_TIERS: Readonly<Record<string, string>> = { auto: 'auto', default: 'standard_only' };
const JSON_INSTRUCTION = { type: 'text', text: 'Answer with one JSON object and with nothing else.' } as const;

export interface AnthropicRequest {
  body: Record<string, unknown>;
  /** The tool whose arguments are the answer's text; null: none. */
  answerTool: string | null;
}

export interface RequestOptions {
  traits: ModelTraits;
  /** Arguments of tool calls are streamed before they are known to be valid JSON. */
  isEager: boolean;
}

/**
 * The upstream request body, always streamed. Parameters without a counterpart (`seed`, `logprobs`, `logit_bias`, penalties, `n`) are left out.
 *
 * @throws `router.provider_refused` naming an item that the API has no block for
 */
export function toRequest(
  { model, request, maxCompletionTokens, searchesWeb = false }: UpstreamRequest,
  { traits, isEager }: RequestOptions,
): AnthropicRequest {
  const maxTokens = request.max_completion_tokens ?? request.max_tokens ?? maxCompletionTokens ?? DEFAULT_MAX_TOKENS + (request.reasoning?.max_tokens ?? 0);
  const { system, messages } = toConversation(request.messages);
  const schema = schemaOf(request);
  const answerSchema = traits.takesSchema ? null : schema;
  const { tools, choice, answerTool, isForced } = toTools(request, { traits, isEager, messages, answerSchema, searchesWeb });
  const { thinking, effort } = toThinking(request, {
    traits,
    maxTokens,
    isContinued: messages.at(-1)?.role === 'assistant',
    lacksThinking: lacksThinking(messages),
    isToolForced: isForced,
  });
  if (isJsonWithoutSchema(request, schema)) system.push({ ...JSON_INSTRUCTION });
  const mark = cacheControlOf(request);
  limitBreakpoints([...tools, ...system, ...messages.flatMap(({ content }) => content)], mark === undefined ? 0 : 1);
  const format = schema !== null && traits.takesSchema ? { format: { type: 'json_schema', schema: closedSchema(schema) } } : {};
  const output = { ...(effort === undefined ? {} : { effort }), ...format };
  const isThinking = thinking !== undefined && thinking.type !== 'disabled';
  const body: Record<string, unknown> = {
    model,
    max_tokens: maxTokens,
    ...(system.length === 0 ? {} : { system }),
    messages,
    ...(tools.length === 0 ? {} : { tools }),
    ...(choice === null ? {} : { tool_choice: choice }),
    ...(thinking === undefined ? {} : { thinking }),
    ...(Object.keys(output).length === 0 ? {} : { output_config: output }),
    ...(traits.takesSampling ? sampling(request, isThinking) : {}),
    ...stopOf(request),
    ...(request.user === undefined ? {} : { metadata: { user_id: request.user } }),
    ...tierOf(request),
    ...(mark === undefined ? {} : { cache_control: mark }),
    stream: true,
  };
  return { body, answerTool };
}

function lacksThinking(messages: readonly Message[]): boolean {
  const last = messages.findLast(({ role }) => role === 'assistant');
  const isCalling = last?.content.some(({ type }) => type === 'tool_use') ?? false;
  const first = last?.content[0]?.type;
  return isCalling && first !== 'thinking' && first !== 'redacted_thinking';
}

function schemaOf({ response_format: format }: ChatRequest): Record<string, unknown> | null {
  return format?.type === 'json_schema' ? (format.json_schema.schema ?? null) : null;
}

function isJsonWithoutSchema({ response_format: format }: ChatRequest, schema: Record<string, unknown> | null): boolean {
  return format?.type === 'json_object' || (format?.type === 'json_schema' && schema === null);
}

/** The API takes `temperature` or `top_p`, and beside thinking `top_p` in its highest range alone. */
function sampling({ temperature, top_p: topP, top_k: topK }: ChatRequest, isThinking: boolean): Record<string, number> {
  if (isThinking) return typeof topP === 'number' && topP >= MIN_TOP_P_THINKING ? { top_p: topP } : {};
  const fields: Record<string, number> = {};
  if (typeof temperature === 'number') fields.temperature = Math.min(temperature, MAX_TEMPERATURE);
  else if (typeof topP === 'number') fields.top_p = topP;
  if (typeof topK === 'number') fields.top_k = topK;
  return fields;
}

/** The API refuses sequences of white space alone. */
function stopOf({ stop }: ChatRequest): { stop_sequences?: string[] } {
  const sequences = (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((text) => text.trim() !== '');
  return sequences.length === 0 ? {} : { stop_sequences: sequences };
}

function tierOf({ service_tier: tier }: ChatRequest): { service_tier?: string } {
  const known = typeof tier === 'string' ? SERVICE_TIERS[tier] : undefined;
  return known === undefined ? {} : { service_tier: known };
}
