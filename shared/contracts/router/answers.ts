import { z } from 'zod';
import type { ChatCompletion, RouterErrorBody, Usage } from './chat-completion.ts';
import type { EmbeddingList } from './embedding-list.ts';
import type { EndpointEntry, EndpointList, ModelEndpoints, PercentileEntry } from './model-endpoints.ts';
import type { ModelEntry, ModelList, ModelPricing, ProviderList } from './model-list.ts';
import type { ResponseObject, ResponseUsage, StatedFormat } from './response-object.ts';

/** What the router's API answers with, as published in `/openapi.json` and `schemas/`. Readers ignore fields that they do not know. */

const json = z.record(z.string(), z.unknown());
/** `code` equals the status; `param`: the path of the invalid field, `""` for none. */
const error = z.object({ code: z.int(), message: z.string(), type: z.string(), param: z.string(), metadata: json.exactOptional() });
export const routerErrorAnswer = z.object({ error, openrouter_metadata: json.exactOptional() }) satisfies z.ZodType<
  Omit<RouterErrorBody, 'openrouter_metadata'>
>;

const count = z.int().min(0);
const usd = z.number();
const spent = {
  server_tool_use: z.object({ web_search_requests: count }).exactOptional(),
  cost: usd.exactOptional(),
  is_byok: z.literal(false).exactOptional(),
};
const usage = z.object({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: z
    .object({ cached_tokens: count, cache_write_tokens: count.exactOptional(), audio_tokens: count.exactOptional(), video_tokens: count.exactOptional() })
    .exactOptional(),
  completion_tokens_details: z
    .object({
      reasoning_tokens: count,
      audio_tokens: count.exactOptional(),
      image_tokens: count.exactOptional(),
      accepted_prediction_tokens: count.exactOptional(),
      rejected_prediction_tokens: count.exactOptional(),
    })
    .exactOptional(),
  ...spent,
  server_tool_use_details: z.object({ web_search_requests: count }).exactOptional(),
  cost_details: z.object({ upstream_inference_cost: z.null(), upstream_inference_prompt_cost: usd, upstream_inference_completions_cost: usd }).exactOptional(),
}) satisfies z.ZodType<Usage>;

const toolCall = z.object({ id: z.string(), type: z.literal('function'), function: z.object({ name: z.string(), arguments: z.string() }) });

/** A whole answer; with `stream: true` the same comes in pieces, as events. */
export const chatCompletionAnswer = z.object({
  id: z.string(),
  object: z.literal('chat.completion'),
  created: z.int(),
  model: z.string(),
  provider: z.string(),
  system_fingerprint: z.string().nullable(),
  service_tier: z.string().exactOptional(),
  choices: z.array(
    z.object({
      index: z.int(),
      finish_reason: z.enum(['tool_calls', 'stop', 'length', 'content_filter', 'error']).nullable(),
      native_finish_reason: z.string().nullable(),
      logprobs: z.looseObject({}).nullable(),
      message: z.object({
        role: z.literal('assistant'),
        content: z.string().nullable(),
        refusal: z.string().nullable(),
        reasoning: z.string().exactOptional(),
        reasoning_details: z.array(z.looseObject({ type: z.string() })).exactOptional(),
        annotations: z.array(z.looseObject({ type: z.string() })).exactOptional(),
        images: z.array(z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string() }) })).exactOptional(),
        audio: z.looseObject({ id: z.string() }).exactOptional(),
        tool_calls: z.array(toolCall).exactOptional(),
      }),
      reasoning_details: z.array(z.looseObject({ type: z.string() })).exactOptional(),
      error: error.exactOptional(),
    }),
  ),
  usage: usage.exactOptional(),
  openrouter_metadata: json.exactOptional(),
}) satisfies z.ZodType<Looser<ChatCompletion>>;

/** Parts that are published without their inner fields. */
type Looser<Answer> = { [Field in keyof Answer]: Field extends 'choices' | 'output' ? unknown[] : Answer[Field] };

const responseUsage = z.object({
  input_tokens: count,
  input_tokens_details: z.object({ cached_tokens: count, cache_write_tokens: count.exactOptional() }),
  output_tokens: count,
  output_tokens_details: z.object({ reasoning_tokens: count }),
  total_tokens: count,
  cost: usd.exactOptional(),
  is_byok: z.literal(false).exactOptional(),
  cost_details: z.object({ upstream_inference_cost: z.null(), upstream_inference_input_cost: usd, upstream_inference_output_cost: usd }).exactOptional(),
}) satisfies z.ZodType<ResponseUsage>;

const statedFormat = z.union([
  z.object({ type: z.enum(['text', 'json_object', 'grammar', 'python']) }),
  z.object({ type: z.literal('json_schema'), name: z.string(), description: z.string().exactOptional(), schema: json, strict: z.boolean().nullable() }),
]) satisfies z.ZodType<StatedFormat>;

/** What the request said, or what holds without it. */
const stated = {
  instructions: z.string().nullable(),
  metadata: json.nullable(),
  tools: z.array(
    z.object({
      type: z.literal('function'),
      name: z.string(),
      description: z.string().nullable(),
      parameters: json.nullable(),
      strict: z.boolean().nullable(),
    }),
  ),
  tool_choice: z.union([z.enum(['auto', 'none', 'required']), z.object({ type: z.literal('function'), name: z.string() })]),
  parallel_tool_calls: z.boolean(),
  temperature: z.number().nullable(),
  top_p: z.number().nullable(),
  presence_penalty: z.number().nullable(),
  frequency_penalty: z.number().nullable(),
  max_output_tokens: z.number().nullable(),
  max_tool_calls: z.null(),
  previous_response_id: z.null(),
  reasoning: z.object({ effort: z.string().nullable(), summary: z.string().exactOptional() }).nullable(),
  store: z.literal(false),
  text: z.object({ format: statedFormat, verbosity: z.string().exactOptional() }),
  top_logprobs: count,
  truncation: z.literal('disabled'),
  background: z.literal(false),
  prompt_cache_key: z.string().nullable(),
  safety_identifier: z.string().nullable(),
  user: z.string().nullable(),
  prompt: z.null(),
};

export const responseAnswer = z.object({
  id: z.string(),
  object: z.literal('response'),
  created_at: z.number(),
  completed_at: z.number().nullable(),
  status: z.enum(['completed', 'incomplete', 'in_progress', 'failed']),
  model: z.string(),
  provider: z.string(),
  output: z.array(z.looseObject({ type: z.enum(['message', 'function_call', 'reasoning', 'image_generation_call']), id: z.string() })),
  output_text: z.string(),
  error: z
    .object({ code: z.enum(['server_error', 'rate_limit_exceeded', 'invalid_prompt', 'image_content_policy_violation']), message: z.string() })
    .nullable(),
  error_type: z.string().exactOptional(),
  incomplete_details: z.object({ reason: z.enum(['max_output_tokens', 'content_filter']) }).nullable(),
  service_tier: z.string().nullable(),
  usage: responseUsage.nullable(),
  ...stated,
  openrouter_metadata: json.exactOptional(),
}) satisfies z.ZodType<Looser<ResponseObject>>;

export const embeddingsAnswer = z.object({
  object: z.literal('list'),
  id: z.string(),
  model: z.string(),
  provider: z.string(),
  data: z.array(z.object({ object: z.literal('embedding'), index: count, embedding: z.union([z.array(z.number()), z.string()]) })),
  usage: usage.pick({ prompt_tokens: true, total_tokens: true, cost: true, cost_details: true, is_byok: true }),
}) satisfies z.ZodType<EmbeddingList>;

/** US dollars as decimal text; `-1`: not known. */
const pricing = z.object({
  prompt: z.string(),
  completion: z.string(),
  request: z.string().exactOptional(),
  image: z.string().exactOptional(),
  audio: z.string().exactOptional(),
  web_search: z.string().exactOptional(),
  input_cache_read: z.string().exactOptional(),
  input_cache_write: z.string().exactOptional(),
  input_cache_write_1h: z.string().exactOptional(),
}) satisfies z.ZodType<ModelPricing>;

export const modelAnswer = z.object({
  id: z.string(),
  object: z.literal('model'),
  owned_by: z.string(),
  canonical_slug: z.string(),
  name: z.string(),
  created: z.number(),
  description: z.string(),
  context_length: z.number().nullable(),
  architecture: z.object({
    modality: z.string().nullable(),
    input_modalities: z.array(z.string()),
    output_modalities: z.array(z.string()),
    tokenizer: z.string(),
    instruct_type: z.null(),
  }),
  pricing,
  top_provider: z.object({ context_length: z.number().nullable(), max_completion_tokens: z.number().nullable(), is_moderated: z.boolean() }),
  per_request_limits: z.null(),
  supported_parameters: z.array(z.string()),
  default_parameters: z.null(),
  supported_voices: z.null(),
  links: z.object({ details: z.string() }),
}) satisfies z.ZodType<ModelEntry>;

/** `links.next`: the path of the next page, null on the last one. `total_count`: of all pages. */
export const modelListAnswer = z.object({
  object: z.literal('list'),
  data: z.array(modelAnswer),
  links: z.object({ next: z.string().nullable() }),
  total_count: count,
}) satisfies z.ZodType<ModelList>;

/** At the top level for OpenAI clients, in `data` for others. */
export const oneModelAnswer = modelAnswer.extend({ data: modelAnswer });

const percentiles = z.object({ p50: z.number(), p75: z.number(), p90: z.number(), p99: z.number() }) satisfies z.ZodType<PercentileEntry>;

/** `status`: 0 for no known fault, -1 for one that fails often, -2 for one that is asked last. Uptimes are percent, latencies milliseconds to the first token, throughput tokens per second. */
export const endpointAnswer = z.object({
  name: z.string(),
  model_id: z.string(),
  model_name: z.string(),
  provider_name: z.string(),
  tag: z.string(),
  context_length: z.number(),
  pricing,
  quantization: z.string().nullable(),
  max_completion_tokens: z.number().nullable(),
  max_prompt_tokens: z.null(),
  supported_parameters: z.array(z.string()),
  status: z.literal([0, -1, -2]),
  uptime_last_30m: z.number().nullable(),
  uptime_last_5m: z.number().nullable(),
  uptime_last_1d: z.number().nullable(),
  supports_implicit_caching: z.boolean(),
  supports_tool_choice: z.object({ none: z.boolean(), auto: z.boolean(), required: z.boolean(), function: z.boolean() }),
  latency_last_30m: percentiles.nullable(),
  throughput_last_30m: percentiles.nullable(),
}) satisfies z.ZodType<EndpointEntry>;

export const endpointListAnswer = z.object({ data: z.array(endpointAnswer) }) satisfies z.ZodType<EndpointList>;
export const modelEndpointsAnswer = z.object({
  data: modelAnswer.pick({ id: true, name: true, created: true, description: true, architecture: true }).extend({ endpoints: z.array(endpointAnswer) }),
}) satisfies z.ZodType<ModelEndpoints>;

export const providersAnswer = z.object({
  data: z.array(
    z.object({
      name: z.string(),
      slug: z.string(),
      privacy_policy_url: z.string().nullable(),
      terms_of_service_url: z.string().nullable(),
      status_page_url: z.string().nullable(),
    }),
  ),
}) satisfies z.ZodType<ProviderList>;
