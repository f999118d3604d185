import { z } from 'zod';

/**
 * The body of POST /api/v1/chat/completions (router-api, "Chat completion request"). Unknown fields are kept, never refused:
 * clients are newer than we are. Absent sampling parameters stay absent: the documented default of 1 is the upstream's own.
 */
const cacheControl = z.looseObject({ type: z.literal('ephemeral'), ttl: z.enum(['5m', '1h']).optional() });
const textItem = z.looseObject({ type: z.literal('text'), text: z.string(), cache_control: cacheControl.optional() });
const contentItem = z.discriminatedUnion('type', [
  textItem,
  z.looseObject({
    type: z.literal('image_url'),
    image_url: z.looseObject({ url: z.string(), detail: z.enum(['auto', 'low', 'high', 'original']).optional() }),
  }),
  z.looseObject({ type: z.literal('input_audio'), input_audio: z.looseObject({ data: z.string(), format: z.string() }) }),
  z.looseObject({ type: z.literal('input_video') }),
  z.looseObject({ type: z.literal('video_url') }),
  z.looseObject({ type: z.literal('file'), file: z.looseObject({}) }),
]);

const textContent = z.union([z.string(), z.array(textItem)]);
const anyContent = z.union([z.string(), z.array(contentItem)]);

const toolCall = z.looseObject({
  id: z.string(),
  type: z.literal('function'),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
});

const message = z.discriminatedUnion('role', [
  z.looseObject({ role: z.literal('system'), content: textContent, name: z.string().optional() }),
  z.looseObject({ role: z.literal('developer'), content: textContent, name: z.string().optional() }),
  z.looseObject({ role: z.literal('user'), content: anyContent, name: z.string().optional() }),
  z.looseObject({
    role: z.literal('assistant'),
    content: anyContent.nullish(),
    name: z.string().optional(),
    tool_calls: z.array(toolCall).optional(),
    refusal: z.string().nullish(),
    reasoning: z.string().nullish(),
  }),
  z.looseObject({ role: z.literal('tool'), content: anyContent, tool_call_id: z.string() }),
]);

const tool = z.looseObject({
  type: z.literal('function'),
  function: z.looseObject({
    name: z.string().min(1),
    description: z.string().optional(),
    parameters: z.record(z.string(), z.unknown()).optional(),
    strict: z.boolean().nullish(),
  }),
});

const toolChoice = z.union([
  z.enum(['none', 'auto', 'required']),
  z.looseObject({ type: z.literal('function'), function: z.looseObject({ name: z.string() }) }),
]);

export const chatRequest = z.looseObject({
  messages: z.array(message).min(1),
  model: z.string().min(1).optional(),
  models: z.array(z.string().min(1)).optional(),
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
  seed: z.number().int().nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  stream: z.boolean().optional(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  tool_choice: toolChoice.optional(),
  tools: z.array(tool).optional(),
  parallel_tool_calls: z.boolean().nullish(),
});

export type ChatRequest = z.infer<typeof chatRequest>;
export type ChatMessage = z.infer<typeof message>;
export type ChatTool = z.infer<typeof tool>;
