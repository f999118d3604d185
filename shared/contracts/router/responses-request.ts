import { z } from 'zod';
import { chatRequest } from './chat-request.ts';
import { inputItem } from './responses-input.ts';
import { searchDomains, userLocation } from './search-limits.ts';

const { shape: chat } = chatRequest;

export const STATELESS = 'is not supported: this API is stateless, and stores no response. Send the whole conversation as input';
const unstored = { error: STATELESS };

/** Names of the one tool that the router itself has. */
const WEB_SEARCH = z.enum(['web_search', 'web_search_2025_08_26', 'web_search_preview', 'web_search_preview_2025_03_11']);

const functionTool = z.looseObject({
  type: z.literal('function'),
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
  strict: z.boolean().nullish(),
});
const webSearchTool = z.looseObject({
  type: WEB_SEARCH,
  filters: z.looseObject({ allowed_domains: searchDomains.nullish() }).nullish(),
  user_location: userLocation.nullish(),
});
const tool = z.discriminatedUnion('type', [functionTool, webSearchTool], { error: 'must be a function, or the web search of this router' });

const toolChoice = z.union([
  z.enum(['none', 'auto', 'required']),
  z.discriminatedUnion('type', [
    z.looseObject({ type: z.literal('function'), name: z.string() }),
    z.looseObject({
      type: z.literal('allowed_tools'),
      mode: z.enum(['auto', 'required']),
      tools: z.array(z.looseObject({ type: z.string(), name: z.string().optional() })),
    }),
    webSearchTool,
  ]),
]);

const textFormat = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text') }),
  z.looseObject({ type: z.literal('json_object') }),
  z.looseObject({
    type: z.literal('json_schema'),
    name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, "_" or "-"'),
    description: z.string().nullish(),
    schema: z.record(z.string(), z.unknown()).nullish(),
    strict: z.boolean().nullish(),
  }),
]);

/** Body of POST /responses, at `/api/v1` and `/api/alpha`. Unknown fields are accepted and ignored: clients may be newer. */
export const responsesRequest = z.looseObject({
  input: z.union([z.string(), z.array(inputItem).min(1)]),
  instructions: z.string().nullish(),
  model: chat.model,
  models: chat.models,
  provider: chat.provider,
  plugins: chat.plugins.nullable(),
  route: chat.route,
  user: z.string().nullish(),
  session_id: chat.session_id,
  metadata: chat.metadata.nullable(),
  trace: chat.trace,
  stream: chat.stream,
  stream_options: z.looseObject({}).nullish(),
  max_output_tokens: chat.max_tokens,
  temperature: chat.temperature,
  top_p: chat.top_p,
  top_k: chat.top_k,
  presence_penalty: chat.presence_penalty,
  frequency_penalty: chat.frequency_penalty,
  top_logprobs: chat.top_logprobs,
  tools: z.array(tool).nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: chat.parallel_tool_calls,
  max_tool_calls: z.number().int().min(1).nullish(),
  text: z.looseObject({ format: textFormat.nullish(), verbosity: chat.verbosity }).nullish(),
  reasoning: chat.reasoning.nullable(),
  include: z.array(z.string()).nullish(),
  modalities: chat.modalities,
  image_config: chat.image_config,
  service_tier: chat.service_tier,
  prompt_cache_key: chat.prompt_cache_key,
  safety_identifier: chat.safety_identifier,
  truncation: z.enum(['auto', 'disabled']).nullish(),
  debug: z.unknown().optional(),
  store: z.literal(false, unstored).nullish(),
  background: z.literal(false, unstored).nullish(),
  previous_response_id: z.null(unstored).optional(),
  conversation: z.null(unstored).optional(),
  prompt: z.null(unstored).optional(),
});

export type ResponsesRequest = z.infer<typeof responsesRequest>;
export type ResponsesTool = z.infer<typeof tool>;
