import { z } from 'zod';
import { cacheControl, message } from './chat-message.ts';
import { searchLimits } from './search-limits.ts';

const tool = z.looseObject({
  type: z.literal('function'),
  function: z.looseObject({
    name: z.string().min(1),
    description: z.string().optional(),
    parameters: z.record(z.string(), z.unknown()).optional(),
    strict: z.boolean().nullish(),
  }),
  cache_control: cacheControl.optional(),
});

const toolChoice = z.union([
  z.enum(['none', 'auto', 'required']),
  z.looseObject({ type: z.literal('function'), function: z.looseObject({ name: z.string() }) }),
]);

/** `max` is of newer clients. */
const effort = z.enum(['max', 'xhigh', 'high', 'medium', 'low', 'minimal', 'none']).nullish();
const reasoning = z.looseObject({
  effort,
  summary: z.enum(['auto', 'concise', 'detailed']).nullish(),
  max_tokens: z.number().int().min(1).nullish(),
  exclude: z.boolean().nullish(),
  enabled: z.boolean().nullish(),
});

const responseFormat = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text') }),
  z.looseObject({ type: z.literal('json_object') }),
  z.looseObject({
    type: z.literal('json_schema'),
    json_schema: z.looseObject({
      name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, "_" or "-"'),
      description: z.string().optional(),
      schema: z.record(z.string(), z.unknown()).optional(),
      strict: z.boolean().nullish(),
    }),
  }),
  z.looseObject({ type: z.literal('grammar'), grammar: z.string() }),
  z.looseObject({ type: z.literal('python') }),
]);

const share = z.number().min(0).max(1).nullish();
const predictedText = z.union([z.string(), z.array(z.looseObject({ type: z.literal('text'), text: z.string() }))]);

/** Fields that clients send beside those of the contract. Each reaches the upstreams that have it. */
const beyondTheContract = {
  top_k: z.number().int().min(0).nullish(),
  min_p: share,
  top_a: share,
  repetition_penalty: z.number().gt(0).max(2).nullish(),
  /** OpenAI's name of `reasoning.effort`. */
  reasoning_effort: effort,
  /** The legacy form of `reasoning: {}`, and false of `reasoning: {exclude: true}`. */
  include_reasoning: z.boolean().nullish(),
  verbosity: z.enum(['low', 'medium', 'high', 'xhigh', 'max']).nullish(),
  prediction: z.looseObject({ type: z.literal('content'), content: predictedText }).nullish(),
  /** Of the answer. */
  modalities: z.array(z.enum(['text', 'image', 'audio'])).nullish(),
  audio: z.looseObject({ voice: z.union([z.string(), z.looseObject({ id: z.string() })]), format: z.string() }).nullish(),
  image_config: z.record(z.string(), z.unknown()).nullish(),
  service_tier: z.enum(['auto', 'default', 'flex', 'priority', 'scale', 'fast']).nullish(),
  /** A mark on the last block that can be cached. */
  cache_control: cacheControl.nullish(),
  prompt_cache_key: z.string().nullish(),
  safety_identifier: z.string().nullish(),
  trace: z.looseObject({}).nullish(),
  web_search_options: z.looseObject({ search_context_size: z.enum(['low', 'medium', 'high']).nullish() }).nullish(),
  transforms: z.array(z.string()).nullish(),
  /** By the provider's slug: fields of its own API. */
  provider_options: z.record(z.string(), z.record(z.string(), z.unknown())).nullish(),
};

/** Most entries of the lists of one request; each costs a look-up per endpoint, or a stage. */
export const requestLimits = { models: 100, plugins: 32, slugs: 256 } as const;

/** `exacto` is of newer clients: by quality. */
const sortBy = z.enum(['price', 'throughput', 'latency', 'exacto']);
/** USD, per million tokens for prompt and completion, else per unit. Strings avoid a float's rounding. */
const priceCeiling = z.union([z.number().min(0), z.string().regex(/^\d+(\.\d+)?(e-?\d+)?$/i, 'must be a number of at least 0')]).optional();
/** A number is the median; newer clients send percentiles instead. */
const cutoff = z.union([z.number(), z.partialRecord(z.enum(['p50', 'p75', 'p90', 'p99']), z.number())]).nullish();
/** Unknown slugs are accepted too. */
const slugs = z.array(z.string()).max(requestLimits.slugs).nullish();

/** Routing preferences (router-api, "provider"). */
export const providerPreferences = z.looseObject({
  allow_fallbacks: z.boolean().nullish(),
  require_parameters: z.boolean().nullish(),
  data_collection: z.enum(['allow', 'deny']).nullish(),
  zdr: z.boolean().nullish(),
  enforce_distillable_text: z.boolean().nullish(),
  order: slugs,
  only: slugs,
  ignore: slugs,
  quantizations: z.array(z.enum(['int4', 'int8', 'fp4', 'fp6', 'fp8', 'fp16', 'bf16', 'fp32', 'unknown'])).nullish(),
  sort: z.union([sortBy, z.looseObject({ by: sortBy.nullish(), partition: z.enum(['model', 'none']).nullish() })]).nullish(),
  max_price: z
    .looseObject({
      prompt: priceCeiling,
      completion: priceCeiling,
      image: priceCeiling,
      audio: priceCeiling,
      request: priceCeiling,
      /** Beyond the contract: per search of the provider. */
      web_search: priceCeiling,
    })
    .optional(),
  preferred_min_throughput: cutoff,
  preferred_max_latency: cutoff,
  min_throughput: z.number().nullish(),
  max_latency: z.number().nullish(),
});

const knownPlugin = z.discriminatedUnion('id', [
  z.looseObject({ id: z.literal('moderation') }),
  z
    .looseObject({
      id: z.literal('web'),
      enabled: z.boolean().optional(),
      max_results: z.number().int().min(1).max(25).optional(),
      search_prompt: z.string().max(10_000).optional(),
      /** `native`, or an external search engine. */
      engine: z.string().min(1).optional(),
      ...searchLimits,
    })
    .refine(({ include_domains: included = [], exclude_domains: excluded = [] }) => included.length === 0 || excluded.length === 0, {
      path: ['exclude_domains'],
      error: 'must not be beside include_domains',
    }),
  z.looseObject({
    id: z.literal('file-parser'),
    enabled: z.boolean().optional(),
    pdf: z
      .looseObject({
        engine: z
          .string()
          .regex(/^(pdf-text|native|[a-z0-9-]+-ocr)$/, 'must be "pdf-text", "native" or the name of an OCR engine')
          .optional(),
      })
      .optional(),
  }),
  z.looseObject({ id: z.literal('response-healing'), enabled: z.boolean().optional() }),
]);
export type PluginId = z.infer<typeof knownPlugin>['id'];
const KNOWN_PLUGINS: ReadonlySet<string> = new Set(knownPlugin.options.map((option) => option.shape.id.value));
/** Unknown plugins are accepted, like unknown fields. `abort`: otherwise the error of an invalid known plugin would name its id. */
const otherPlugin = z.looseObject({ id: z.string().refine((id) => !KNOWN_PLUGINS.has(id), { abort: true }) });
export const plugin = z.union([knownPlugin, otherPlugin]);

/**
 * Body of POST /api/v1/chat/completions (router-api, "Chat completion request"). Unknown fields are kept: clients may be newer. Absent
 * sampling parameters stay absent: the default of 1 is the upstream's.
 */
const fields = z.looseObject({
  messages: z.array(message).min(1),
  model: z.string().min(1).optional(),
  models: z.array(z.string().min(1)).max(requestLimits.models).optional(),
  provider: providerPreferences.nullish(),
  plugins: z.array(plugin).max(requestLimits.plugins).optional(),
  route: z.enum(['fallback', 'sort']).nullish(),
  user: z.string().optional(),
  session_id: z.string().max(128).optional(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  logit_bias: z.record(z.string(), z.number().min(-100).max(100)).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.number().int().min(0).max(20).nullish(),
  max_tokens: z.number().int().min(1).nullish(),
  max_completion_tokens: z.number().int().min(1).nullish(),
  metadata: z.record(z.string(), z.string()).optional(),
  reasoning: reasoning.optional(),
  response_format: responseFormat.optional(),
  seed: z.number().int().nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  /** Some clients send null for the default. */
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  /** Some clients send 0 for greedy decoding. */
  top_p: z.number().min(0).max(1).nullish(),
  tool_choice: toolChoice.optional(),
  tools: z.array(tool).optional(),
  parallel_tool_calls: z.boolean().nullish(),
  debug: z.looseObject({ echo_upstream_body: z.boolean().optional() }).optional(),
  ...beyondTheContract,
});
export const chatRequest = fields.refine(hasLogprobsForTop, { path: ['top_logprobs'], error: 'requires logprobs: true' });

/** Upstreams refuse a number of alternatives to tokens that are not listed. */
export function hasLogprobsForTop({ logprobs, top_logprobs: top }: { logprobs?: unknown; top_logprobs?: unknown }): boolean {
  return top === undefined || top === null || top === 0 || logprobs === true;
}

export type ChatRequest = z.infer<typeof chatRequest>;
export type ChatMessage = z.infer<typeof message>;
export type ChatTool = z.infer<typeof tool>;
export type ChatPlugin = z.infer<typeof plugin>;
