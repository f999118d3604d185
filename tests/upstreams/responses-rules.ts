import { z } from 'zod';

const inputText = z.strictObject({ type: z.literal('input_text'), text: z.string() });
const input = z.discriminatedUnion('type', [
  inputText,
  z.strictObject({ type: z.literal('input_image'), image_url: z.string(), detail: z.enum(['auto', 'low', 'high', 'original']) }),
  z.strictObject({
    type: z.literal('input_file'),
    filename: z.string().optional(),
    file_data: z.string().optional(),
    file_url: z.string().optional(),
    file_id: z.string().optional(),
  }),
]);
const item = z.union([
  z.strictObject({ role: z.enum(['developer', 'user']), content: z.array(input).min(1) }),
  z.strictObject({ role: z.literal('assistant'), content: z.array(z.strictObject({ type: z.literal('output_text'), text: z.string() })).min(1) }),
  z.strictObject({ type: z.literal('function_call'), call_id: z.string(), name: z.string(), arguments: z.string() }),
  z.strictObject({ type: z.literal('function_call_output'), call_id: z.string(), output: z.union([z.string(), z.array(input)]) }),
  z.strictObject({
    type: z.literal('reasoning'),
    id: z.string().optional(),
    summary: z.array(z.strictObject({ type: z.literal('summary_text'), text: z.string() })),
    encrypted_content: z.string(),
  }),
]);

/** The fields of a request that the API takes (npm openai 6.49.0, ResponseCreateParams). */
export const responsesRequest = z.strictObject({
  model: z.string(),
  input: z.array(item).min(1),
  max_output_tokens: z.number().int().min(16).optional(),
  temperature: z.number().optional(),
  top_p: z.number().optional(),
  top_logprobs: z.number().int().min(0).max(20).optional(),
  parallel_tool_calls: z.boolean().optional(),
  service_tier: z.enum(['auto', 'default', 'flex', 'scale', 'priority']).optional(),
  prompt_cache_key: z.string().optional(),
  user: z.string().optional(),
  tools: z
    .array(
      z.strictObject({
        type: z.literal('function'),
        name: z.string(),
        description: z.string().optional(),
        parameters: z.record(z.string(), z.unknown()),
        strict: z.boolean(),
      }),
    )
    .optional(),
  tool_choice: z.union([z.enum(['auto', 'none', 'required']), z.strictObject({ type: z.literal('function'), name: z.string() })]).optional(),
  text: z
    .strictObject({
      verbosity: z.string().optional(),
      format: z
        .discriminatedUnion('type', [
          z.strictObject({ type: z.literal('json_object') }),
          z.strictObject({
            type: z.literal('json_schema'),
            name: z.string(),
            description: z.string().optional(),
            schema: z.record(z.string(), z.unknown()),
            strict: z.boolean(),
          }),
        ])
        .optional(),
    })
    .optional(),
  reasoning: z.strictObject({ effort: z.string().optional(), summary: z.enum(['auto', 'concise', 'detailed']).optional() }).optional(),
  include: z.array(z.enum(['reasoning.encrypted_content', 'message.output_text.logprobs'])).optional(),
  store: z.literal(false),
  stream: z.literal(true),
});

/** Why the API would refuse a request, as it documents; null: it would not. */
export function refusalOf(body: unknown): string | null {
  const parsed = responsesRequest.safeParse(body);
  if (!parsed.success) return z.prettifyError(parsed.error);
  const { input: items } = parsed.data;
  const calls = new Set(items.flatMap((one) => ('type' in one && one.type === 'function_call' ? [one.call_id] : [])));
  const results = new Set(items.flatMap((one) => ('type' in one && one.type === 'function_call_output' ? [one.call_id] : [])));
  if ([...results].some((id) => !calls.has(id))) return 'No tool call found for function call output.';
  if ([...calls].some((id) => !results.has(id))) return 'No tool output found for function call.';
  const isAlone = items.some((one, index) => {
    const next = items[index + 1];
    return 'type' in one && one.type === 'reasoning' && (next === undefined || ('role' in next && next.role !== 'assistant'));
  });
  return isAlone ? "Item of type 'reasoning' was provided without its required following item." : null;
}
