import type { RouterErrorBody, Usage } from '../../contracts/router/chat-completion.ts';
import type { ChatRequest, ChatTool } from '../../contracts/router/chat-request.ts';
import type { OutputItem, ResponseObject, ResponseStatus, StatedFields, StatedFormat } from '../../contracts/router/response-object.ts';
import { type RouterMetadata, withMetadata } from '../../contracts/router/router-metadata.ts';
import { type Answer, finishReasonOf } from '../answer.ts';
import type { AnswerHead } from '../surface.ts';
import { errorFieldOf } from './error-code.ts';
import { instructionsIn } from './to-messages.ts';
import { responseUsageOf } from './usage-of.ts';

/** How a response ends, apart from failures. */
export function endingOf(answer: Answer): { status: ResponseStatus; reason: 'max_output_tokens' | 'content_filter' | null } {
  switch (finishReasonOf(answer)) {
    case 'length':
      return { status: 'incomplete', reason: 'max_output_tokens' };
    case 'content_filter':
      return { status: 'incomplete', reason: 'content_filter' };
    case 'error':
      return { status: 'failed', reason: null };
    case 'stop':
    case 'tool_calls':
      return { status: 'completed', reason: null };
  }
}

interface ResponseState {
  status: ResponseStatus;
  output: OutputItem[];
  reason?: 'max_output_tokens' | 'content_filter' | null;
  error?: RouterErrorBody['error'];
  usage: Usage | null;
  /** The tier that served it; null: not known. */
  serviceTier: string | null;
  /** Absent: it was not asked for. */
  metadata?: RouterMetadata | undefined;
}

/** JSON of the response object. @param stated from `statedIn`, made once per answer */
export function responseJson(head: AnswerHead, stated: string, { status, output, reason = null, error, usage, serviceTier, metadata }: ResponseState): string {
  const response: Record<string, unknown> = {
    id: head.id,
    object: 'response',
    created_at: head.created,
    completed_at: status === 'completed' ? Math.max(head.created, head.now()) : null,
    status,
    model: head.model,
    provider: head.provider,
    output,
    output_text: textIn(output),
    error: error === undefined ? null : errorFieldOf(error),
    ...(error !== undefined && { error_type: error.type }),
    incomplete_details: reason === null ? null : { reason },
    service_tier: serviceTier,
    usage: usage === null ? null : responseUsageOf(usage),
  } satisfies Partial<ResponseObject>;
  return withMetadata(`${JSON.stringify(response).slice(0, -1)},${stated.slice(1)}`, metadata);
}

function textIn(output: readonly OutputItem[]): string {
  let text = '';
  for (const item of output) if (item.type === 'message') for (const part of item.content) if (part.type === 'output_text') text += part.text;
  return text;
}

/** JSON of the fields that the request decides, which all response objects of an answer repeat. */
export function statedIn(request: ChatRequest): string {
  const { reasoning, tools = [], verbosity } = request;
  return JSON.stringify({
    instructions: instructionsIn(request.messages),
    metadata: request.metadata ?? null,
    tools: tools.map(flatTool),
    tool_choice: flatChoice(request.tool_choice),
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    temperature: request.temperature ?? null,
    top_p: request.top_p ?? null,
    presence_penalty: request.presence_penalty ?? null,
    frequency_penalty: request.frequency_penalty ?? null,
    max_output_tokens: request.max_tokens ?? null,
    max_tool_calls: null,
    previous_response_id: null,
    // `summary: null` makes real clients throw.
    reasoning: reasoning === undefined ? null : { effort: reasoning.effort ?? null, ...(reasoning.summary && { summary: reasoning.summary }) },
    store: false,
    text: { format: flatFormat(request.response_format), ...(verbosity && { verbosity }) },
    top_logprobs: request.top_logprobs ?? 0,
    truncation: 'disabled',
    background: false,
    prompt_cache_key: request.prompt_cache_key ?? null,
    safety_identifier: request.safety_identifier ?? null,
    user: request.user ?? null,
    prompt: null,
  } satisfies StatedFields);
}

function flatTool({ function: { name, description, parameters, strict } }: ChatTool): StatedFields['tools'][number] {
  return { type: 'function', name, description: description ?? null, parameters: parameters ?? null, strict: strict ?? null };
}

function flatChoice(choice: ChatRequest['tool_choice']): StatedFields['tool_choice'] {
  return typeof choice === 'object' ? { type: 'function', name: choice.function.name } : (choice ?? 'auto');
}

function flatFormat(format: ChatRequest['response_format']): StatedFormat {
  if (format?.type !== 'json_schema') return { type: format?.type ?? 'text' };
  const { name, description, schema, strict } = format.json_schema;
  return { type: 'json_schema', name, ...(description !== undefined && { description }), schema: schema ?? {}, strict: strict ?? null };
}
