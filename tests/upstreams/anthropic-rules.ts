import { z } from 'zod';

const mark = z.strictObject({ type: z.literal('ephemeral'), ttl: z.enum(['5m', '1h']).optional() }).optional();
const text = z.strictObject({ type: z.literal('text'), text: z.string(), cache_control: mark });
const source = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('base64'), media_type: z.string(), data: z.string() }),
  z.strictObject({ type: z.literal('text'), media_type: z.literal('text/plain'), data: z.string() }),
  z.strictObject({ type: z.literal('url'), url: z.string() }),
  z.strictObject({ type: z.literal('file'), file_id: z.string() }),
]);
const image = z.strictObject({ type: z.literal('image'), source, cache_control: mark });
const document = z.strictObject({ type: z.literal('document'), source, title: z.string().optional(), cache_control: mark });
const block = z.discriminatedUnion('type', [
  text,
  image,
  document,
  z.strictObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string() }),
  z.strictObject({ type: z.literal('redacted_thinking'), data: z.string() }),
  z.strictObject({ type: z.literal('tool_use'), id: z.string().regex(/^[\w-]+$/), name: z.string(), input: z.record(z.string(), z.unknown()) }),
  z.strictObject({
    type: z.literal('tool_result'),
    tool_use_id: z.string().regex(/^[\w-]+$/),
    content: z.array(z.discriminatedUnion('type', [text, image, document])).optional(),
  }),
]);
const message = z.strictObject({ role: z.enum(['user', 'assistant']), content: z.array(block) });
const tool = z.strictObject({
  name: z.string(),
  description: z.string().optional(),
  input_schema: z.looseObject({ type: z.literal('object') }),
  strict: z.literal(true).optional(),
  eager_input_streaming: z.literal(true).optional(),
  cache_control: mark,
});
/** Run by the API (WebSearchTool20250305). */
const searchTool = z.strictObject({
  type: z.literal('web_search_20250305'),
  name: z.literal('web_search'),
  max_uses: z.number().int().min(1).optional(),
  allowed_domains: z.array(z.string()).optional(),
  blocked_domains: z.array(z.string()).optional(),
  user_location: z.looseObject({ type: z.literal('approximate') }).optional(),
  cache_control: mark,
});
const single = { disable_parallel_tool_use: z.literal(true).optional() };

/** The fields of a request that the API takes (npm @anthropic-ai/sdk 1.12.0, MessageCreateParams, and the sampling parameters of earlier versions). */
export const messagesRequest = z.strictObject({
  model: z.string(),
  max_tokens: z.number().int().min(1),
  system: z.array(text).optional(),
  messages: z.array(message),
  tools: z.array(z.union([tool, searchTool])).optional(),
  tool_choice: z
    .discriminatedUnion('type', [
      z.strictObject({ type: z.literal('auto'), ...single }),
      z.strictObject({ type: z.literal('any'), ...single }),
      z.strictObject({ type: z.literal('tool'), name: z.string(), ...single }),
      z.strictObject({ type: z.literal('none') }),
    ])
    .optional(),
  thinking: z
    .discriminatedUnion('type', [
      z.strictObject({ type: z.literal('enabled'), budget_tokens: z.number().int().min(1_024) }),
      z.strictObject({ type: z.literal('adaptive'), display: z.enum(['summarized', 'omitted']).optional() }),
      z.strictObject({ type: z.literal('disabled') }),
    ])
    .optional(),
  output_config: z
    .strictObject({
      effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']).optional(),
      format: z.strictObject({ type: z.literal('json_schema'), schema: z.record(z.string(), z.unknown()) }).optional(),
    })
    .optional(),
  temperature: z.number().min(0).max(1).optional(),
  top_p: z.number().min(0).max(1).optional(),
  top_k: z.number().int().min(0).optional(),
  stop_sequences: z.array(z.string().regex(/\S/)).optional(),
  metadata: z.strictObject({ user_id: z.string() }).optional(),
  service_tier: z.enum(['auto', 'standard_only']).optional(),
  cache_control: mark,
  stream: z.literal(true),
});

type MessagesRequest = z.infer<typeof messagesRequest>;
type Message = MessagesRequest['messages'][number];

/** Why the API would refuse a request, as it documents; null: it would not. */
export function refusalOf(body: unknown): string | null {
  const parsed = messagesRequest.safeParse(body);
  if (!parsed.success) return z.prettifyError(parsed.error);
  const { messages, tools = [], tool_choice: choice, thinking, max_tokens: maxTokens, temperature, top_p: topP, top_k: topK } = parsed.data;
  const problems = [
    [messages.length === 0, 'messages: at least one message is required'],
    [messages[0]?.role !== 'user', 'messages: first message must use the "user" role'],
    [messages.some(({ role }, index) => role === messages[index - 1]?.role), 'messages: roles must alternate'],
    [messages.some(({ content }) => content.length === 0), 'messages: all messages must have non-empty content'],
    [textsOf(parsed.data).some((words) => words.trim() === ''), 'text content blocks must contain non-whitespace text'],
    [/\s$/.test(lastTextOf(messages.at(-1))), 'messages: final assistant content cannot end with trailing whitespace'],
    [marksIn(body) > 4, 'A maximum of 4 blocks with cache_control may be provided'],
    [choice !== undefined && choice.type !== 'none' && tools.length === 0, 'tool_choice may only be specified while providing tools'],
    [tools.length === 0 && messages.some(({ content }) => content.some(({ type }) => type === 'tool_use')), 'tools: must be defined'],
    [new Set(tools.map(({ name }) => name)).size < tools.length, 'tools: Tool names must be unique'],
    [temperature !== undefined && topP !== undefined, 'temperature and top_p cannot both be specified'],
    ...(thinking === undefined || thinking.type === 'disabled'
      ? []
      : ([
          [thinking.type === 'enabled' && thinking.budget_tokens >= maxTokens, 'max_tokens must be greater than thinking.budget_tokens'],
          [choice?.type === 'any' || choice?.type === 'tool', 'Thinking may not be enabled when tool_choice forces tool use'],
          [temperature !== undefined || topK !== undefined || (topP ?? 1) < 0.95, 'sampling parameters may not be set when thinking is enabled'],
          [thinking.type === 'enabled' && callsWithoutThinking(messages), 'Expected `thinking` or `redacted_thinking`, but found `tool_use`'],
        ] as const)),
    ...messages.map((one, index) => [unansweredIn(one, messages[index + 1]), `messages.${index}: tool_use ids without tool_result blocks after`] as const),
    ...messages.map((one, index) => [thinkingAfterCall(one), `messages.${index}: thinking must precede tool_use`] as const),
  ] as const;
  return problems.find(([isProblem]) => isProblem)?.[1] ?? null;
}

function textsOf({ system = [], messages }: MessagesRequest): string[] {
  return [...system, ...messages.flatMap(({ content }) => content)].flatMap((one) => (one.type === 'text' ? [one.text] : []));
}

function lastTextOf(last: Message | undefined): string {
  const block = last?.content.at(-1);
  return last?.role === 'assistant' && block?.type === 'text' ? block.text : '';
}

function marksIn(body: unknown): number {
  return JSON.stringify(body).split('"cache_control":').length - 1;
}

/** Calls without a result directly behind them, or with it behind other content. */
function unansweredIn({ role, content }: Message, next: Message | undefined): boolean {
  const calls = content.flatMap((one) => (one.type === 'tool_use' ? [one.id] : []));
  if (role !== 'assistant' || calls.length === 0) return false;
  const first = next?.content.findIndex(({ type }) => type !== 'tool_result') ?? 0;
  const results = next?.content.slice(0, first === -1 ? undefined : first) ?? [];
  return calls.some((id) => !results.some((one) => one.type === 'tool_result' && one.tool_use_id === id));
}

function thinkingAfterCall({ content }: Message): boolean {
  const call = content.findIndex(({ type }) => type === 'tool_use');
  return call !== -1 && content.slice(call).some(({ type }) => type === 'thinking' || type === 'redacted_thinking');
}

function callsWithoutThinking(messages: readonly Message[]): boolean {
  const last = messages.findLast(({ role }) => role === 'assistant');
  return last?.content.some(({ type }) => type === 'tool_use') === true && !['thinking', 'redacted_thinking'].includes(last.content[0]?.type ?? '');
}
