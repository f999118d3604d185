import { z } from 'zod';

const bytes = z.string().regex(/^[A-Za-z0-9+/]*={0,2}$/);
const cachePoint = z.strictObject({ cachePoint: z.strictObject({ type: z.literal('default'), ttl: z.enum(['5m', '1h']).optional() }) });
const text = z.strictObject({ text: z.string() });
const image = z.strictObject({
  image: z.strictObject({ format: z.enum(['png', 'jpeg', 'gif', 'webp']), source: z.strictObject({ bytes }) }),
});
const document = z.strictObject({
  document: z.strictObject({
    format: z.enum(['pdf', 'csv', 'doc', 'docx', 'xls', 'xlsx', 'html', 'txt', 'md']),
    name: z.string().regex(/^[A-Za-z0-9()[\]-]+(?: [A-Za-z0-9()[\]-]+)*$/),
    source: z.strictObject({ bytes }),
  }),
});
const id = z.string().regex(/^[\w-]{1,64}$/);
const toolUse = z.strictObject({ toolUse: z.strictObject({ toolUseId: id, name: z.string(), input: z.record(z.string(), z.unknown()) }) });
const toolResult = z.strictObject({ toolResult: z.strictObject({ toolUseId: id, content: z.array(z.union([text, image, document])) }) });
const reasoning = z.strictObject({
  reasoningContent: z.union([
    z.strictObject({ reasoningText: z.strictObject({ text: z.string(), signature: z.string() }) }),
    z.strictObject({ redactedContent: bytes }),
  ]),
});
const block = z.union([text, image, document, toolUse, toolResult, reasoning, cachePoint]);
const toolSpec = z.strictObject({
  toolSpec: z.strictObject({
    name: z.string().regex(/^[\w-]{1,64}$/),
    description: z.string().min(1).optional(),
    inputSchema: z.strictObject({ json: z.looseObject({ type: z.literal('object') }) }),
    strict: z.literal(true).optional(),
  }),
});

/** The fields of a request that the API takes (npm @aws-sdk/client-bedrock-runtime 3.1162.0, ConverseStreamCommandInput). */
export const converseRequest = z.strictObject({
  messages: z.array(z.strictObject({ role: z.enum(['user', 'assistant']), content: z.array(block).min(1) })).min(1),
  system: z.array(z.union([text, cachePoint])).optional(),
  inferenceConfig: z
    .strictObject({
      maxTokens: z.number().int().min(1),
      temperature: z.number().min(0).max(1),
      topP: z.number().min(0).max(1),
      stopSequences: z.array(z.string().regex(/\S/)),
    })
    .partial()
    .optional(),
  toolConfig: z
    .strictObject({
      tools: z.array(z.union([toolSpec, cachePoint])).min(1),
      toolChoice: z
        .union([
          z.strictObject({ auto: z.strictObject({}) }),
          z.strictObject({ any: z.strictObject({}) }),
          z.strictObject({ tool: z.strictObject({ name: z.string() }) }),
        ])
        .optional(),
    })
    .optional(),
  additionalModelRequestFields: z.record(z.string(), z.unknown()).optional(),
  outputConfig: z
    .strictObject({
      textFormat: z.strictObject({
        type: z.literal('json_schema'),
        structure: z.strictObject({ jsonSchema: z.strictObject({ schema: z.string(), name: z.string().optional(), description: z.string().optional() }) }),
      }),
      effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']),
    })
    .partial()
    .optional(),
  serviceTier: z.strictObject({ type: z.enum(['default', 'flex', 'priority']) }).optional(),
});

type ConverseRequest = z.infer<typeof converseRequest>;
type Block = ConverseRequest['messages'][number]['content'][number];

const thinkingOf = z.looseObject({
  thinking: z.looseObject({ type: z.string(), budget_tokens: z.number().optional() }).optional(),
  top_k: z.number().optional(),
});

/** Why the API would refuse a request, as it documents; null: it would not. */
export function refusalOf(body: unknown): string | null {
  const parsed = converseRequest.safeParse(body);
  if (!parsed.success) return z.prettifyError(parsed.error);
  const { messages, toolConfig, system = [], inferenceConfig: { maxTokens = Number.POSITIVE_INFINITY, temperature, topP } = {} } = parsed.data;
  const { thinking, top_k: topK } = thinkingOf.parse(parsed.data.additionalModelRequestFields ?? {});
  const isThinking = thinking !== undefined && thinking.type !== 'disabled';
  const blocks = messages.flatMap(({ content }) => content);
  const problems = [
    [messages[0]?.role !== 'user', 'A conversation must start with a user message. Try again with a conversation that starts with a user message.'],
    [messages.some(({ role }, index) => role === messages[index - 1]?.role), 'A conversation must alternate between user and assistant roles.'],
    [
      [...system, ...blocks].some((one) => 'text' in one && one.text.trim() === ''),
      'The text field in the ContentBlock object is blank. Add text and try again.',
    ],
    [/\s$/.test(lastTextOf(messages.at(-1))), 'final assistant content cannot end with trailing whitespace'],
    [JSON.stringify(body).split('"cachePoint":').length - 1 > 4, 'You have exceeded the maximum number of cache points'],
    [messages.some(({ content }) => 'cachePoint' in (content[0] ?? {})), 'A cache point must follow content'],
    [toolConfig === undefined && blocks.some(isOfTools), 'The toolConfig field must be defined when using toolUse and toolResult content blocks.'],
    [hasRepeated((toolConfig?.tools ?? []).flatMap((tool) => ('toolSpec' in tool ? [tool.toolSpec.name] : []))), 'The tool names must be unique'],
    [hasRepeated(blocks.flatMap((one) => ('document' in one ? [one.document.name] : []))), 'Duplicate document names'],
    [
      messages.some(({ content }) => content.some((one) => 'document' in one) && !content.some((one) => 'text' in one)),
      'A text block is required beside documents',
    ],
    [thinking?.budget_tokens !== undefined && thinking.budget_tokens >= maxTokens, 'max_tokens must be greater than thinking.budget_tokens'],
    [isThinking && (temperature !== undefined || topK !== undefined || (topP ?? 1) < 0.95), 'sampling parameters may not be set when thinking is enabled'],
    [isThinking && toolConfig?.toolChoice !== undefined && !('auto' in toolConfig.toolChoice), 'Thinking may not be enabled when tool_choice forces tool use'],
    ...messages.map(({ content }, index) => [
      !isSame(
        content.flatMap((one) => ('toolUse' in one ? [one.toolUse.toolUseId] : [])),
        (messages[index + 1]?.content ?? []).flatMap((one) => ('toolResult' in one ? [one.toolResult.toolUseId] : [])),
      ),
      `Expected toolResult blocks at messages.${index + 1}.content for the toolUse blocks of the turn before`,
    ]),
  ] as const;
  return problems.find(([isProblem]) => isProblem)?.[1].toString() ?? null;
}

function isOfTools(block: Block): boolean {
  return 'toolUse' in block || 'toolResult' in block;
}

function lastTextOf(last: ConverseRequest['messages'][number] | undefined): string {
  const block = last?.content.at(-1);
  return last?.role === 'assistant' && block !== undefined && 'text' in block ? block.text : '';
}

function hasRepeated(names: readonly string[]): boolean {
  return new Set(names).size < names.length;
}

function isSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((one) => others.includes(one));
}
