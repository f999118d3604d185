import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { closedSchema } from '../anthropic/closed-schema.ts';
import { cacheControlOf } from '../anthropic/to-blocks.ts';
import type { UpstreamRequest } from '../provider.ts';
import { marked } from './blocks.ts';
import { limitMarks, withCachePoints } from './cache-points.ts';
import type { BedrockTraits } from './model-traits.ts';
import { type MarkedMessage, toConversation } from './to-messages.ts';
import { toReasoning } from './to-reasoning.ts';
import { toTools } from './to-tools.ts';

const MAX_TEMPERATURE = 1;
/** The lowest beside thinking. */
const MIN_TOP_P_THINKING = 0.95;
const SERVICE_TIERS: ReadonlySet<unknown> = new Set(['default', 'flex', 'priority']);
const JSON_INSTRUCTION = 'Answer with one JSON object and with nothing else.';
const NO_CALLS_INSTRUCTION = 'Answer without calling a tool.';

export interface BedrockRequest {
  body: Record<string, unknown>;
  /** The tool whose arguments are the answer's text; null: none. */
  answerTool: string | null;
}

/**
 * The upstream request body. Parameters without a counterpart (`seed`, `logprobs`, `logit_bias`, penalties, `n`, `user`, `parallel_tool_calls`) are left out. A limit
 * of tokens is sent only where the request has one: without it the model's own counts.
 *
 * @throws `router.provider_refused` naming an item that the API has no block for
 */
export function toRequest({ request, maxCompletionTokens }: UpstreamRequest, traits: BedrockTraits): BedrockRequest {
  const limit = request.max_completion_tokens ?? request.max_tokens ?? null;
  const { system, messages } = toConversation(request.messages, { takesReasoning: traits.family === 'claude' });
  const schema = request.response_format?.type === 'json_schema' ? (request.response_format.json_schema.schema ?? null) : null;
  const { tools, choice, answerTool, isForced, isForbidden } = toTools(request, { traits, messages, answerSchema: traits.takesSchema ? null : schema });
  const { fields, effort, isThinking, excludesSampling } = toReasoning(request, {
    traits,
    maxTokens: limit ?? maxCompletionTokens ?? null,
    isLimited: limit !== null,
    messages,
    isToolForced: isForced,
  });
  if (isJsonWithoutSchema(request, schema)) system.push({ item: { text: JSON_INSTRUCTION } });
  if (isForbidden) system.push({ item: { text: NO_CALLS_INSTRUCTION } });
  markEnd(messages, request);
  limitMarks([...tools, ...system, ...messages.flatMap(({ content }) => content)], traits);
  const { inference, additional } = excludesSampling ? NO_SAMPLING : sampling(request, traits, isThinking);
  const inferenceConfig = { ...(limit === null ? {} : { maxTokens: limit }), ...inference, ...stopOf(request) };
  const additionalModelRequestFields = { ...fields, ...additional };
  const outputConfig = {
    ...(schema !== null && traits.takesSchema ? { textFormat: formatOf(request, schema) } : {}),
    ...(effort === undefined ? {} : { effort }),
  };
  const body: Record<string, unknown> = {
    ...(system.length === 0 ? {} : { system: withCachePoints(system, traits) }),
    messages: messages.map(({ role, content }) => ({ role, content: withCachePoints(content, traits) })),
    ...unlessEmpty('inferenceConfig', inferenceConfig),
    ...(tools.length === 0 ? {} : { toolConfig: { tools: withCachePoints(tools, traits), ...(choice === null ? {} : { toolChoice: choice }) } }),
    ...unlessEmpty('additionalModelRequestFields', additionalModelRequestFields),
    ...unlessEmpty('outputConfig', outputConfig),
    ...(SERVICE_TIERS.has(request.service_tier) ? { serviceTier: { type: request.service_tier } } : {}),
  };
  return { body, answerTool };
}

/** The mark of a request is one at its end. */
function markEnd(messages: readonly MarkedMessage[], request: ChatRequest): void {
  const content = messages.at(-1)?.content ?? [];
  const last = content.pop();
  if (last !== undefined) content.push(marked(last.item, last.cache_control ?? cacheControlOf(request)));
}

function unlessEmpty(name: string, fields: object): Record<string, unknown> {
  return Object.keys(fields).length === 0 ? {} : { [name]: fields };
}

function isJsonWithoutSchema({ response_format: format }: ChatRequest, schema: Record<string, unknown> | null): boolean {
  return format?.type === 'json_object' || (format?.type === 'json_schema' && schema === null);
}

/** The schema is a text. */
function formatOf({ response_format: format }: ChatRequest, schema: Record<string, unknown>): Record<string, unknown> {
  const { name, description } = format?.type === 'json_schema' ? format.json_schema : {};
  const jsonSchema = { schema: JSON.stringify(closedSchema(schema)), ...(name && { name }), ...(description && { description }) };
  return { type: 'json_schema', structure: { jsonSchema } };
}

interface Sampling {
  inference: Record<string, number>;
  additional: Record<string, unknown>;
}

const NO_SAMPLING: Sampling = { inference: {}, additional: {} };

/** Claude takes `temperature` or `top_p`, and beside thinking `top_p` in its highest range alone. */
function sampling({ temperature, top_p: topP, top_k: topK }: ChatRequest, { family, takesSampling, takesTopK }: BedrockTraits, isThinking: boolean): Sampling {
  const inference: Record<string, number> = {};
  if (!takesSampling) return { inference, additional: {} };
  if (isThinking) return { inference: typeof topP === 'number' && topP >= MIN_TOP_P_THINKING ? { topP } : {}, additional: {} };
  if (typeof temperature === 'number') inference.temperature = Math.min(temperature, MAX_TEMPERATURE);
  if (typeof topP === 'number' && (family !== 'claude' || typeof temperature !== 'number')) inference.topP = topP;
  if (typeof topK !== 'number' || !takesTopK) return { inference, additional: {} };
  return { inference, additional: family === 'nova' ? { inferenceConfig: { topK } } : { top_k: topK } };
}

/** The API refuses sequences of white space alone. */
function stopOf({ stop }: ChatRequest): { stopSequences?: string[] } {
  const sequences = (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((text) => text.trim() !== '');
  return sequences.length === 0 ? {} : { stopSequences: sequences };
}
