import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { UpstreamRequest } from '../provider.ts';
import { toConversation } from './to-contents.ts';
import { isLevelled, toThinking } from './to-thinking.ts';

/** The API refuses more. */
const MAX_STOP_SEQUENCES = 5;
const HARM_CATEGORIES = [
  'HARM_CATEGORY_HARASSMENT',
  'HARM_CATEGORY_HATE_SPEECH',
  'HARM_CATEGORY_SEXUALLY_EXPLICIT',
  'HARM_CATEGORY_DANGEROUS_CONTENT',
] as const;

export interface RequestOptions {
  /** Threshold of all categories of harm; null: the vendor's. */
  safety: string | null;
  takesCallIds: boolean;
}

/**
 * The upstream request body. Parameters without a counterpart (`logit_bias`, `user`, `parallel_tool_calls`, `n`) are left out.
 *
 * @throws `router.provider_refused` naming an item that the API has no part for
 */
export function toRequest({ model, request, searchesWeb = false }: UpstreamRequest, { safety, takesCallIds }: RequestOptions): Record<string, unknown> {
  const { instructions, contents } = toConversation(request.messages, { requiresSignatures: isLevelled(model), takesCallIds });
  const generationConfig = toGenerationConfig(model, request);
  // The API takes no functions beside its search.
  const tools = searchesWeb ? { tools: [{ googleSearch: {} }] } : toTools(request);
  return {
    ...(instructions.length === 0 ? {} : { systemInstruction: { parts: instructions } }),
    contents,
    ...(Object.keys(generationConfig).length === 0 ? {} : { generationConfig }),
    ...(tools ?? {}),
    ...(safety === null ? {} : { safetySettings: HARM_CATEGORIES.map((category) => ({ category, threshold: safety })) }),
  };
}

function toGenerationConfig(model: string, request: ChatRequest): Record<string, unknown> {
  const maxTokens = request.max_completion_tokens ?? request.max_tokens ?? null;
  const stop = (typeof request.stop === 'string' ? [request.stop] : (request.stop ?? [])).filter((text) => text !== '');
  const fields: Record<string, unknown> = {
    maxOutputTokens: maxTokens,
    temperature: request.temperature,
    topP: request.top_p,
    topK: request.top_k,
    stopSequences: stop.length === 0 ? null : stop.slice(0, MAX_STOP_SEQUENCES),
    seed: request.seed,
    presencePenalty: request.presence_penalty,
    frequencyPenalty: request.frequency_penalty,
    responseLogprobs: request.logprobs,
    logprobs: request.top_logprobs,
    responseModalities: modalitiesOf(request),
    thinkingConfig: toThinking(model, request, maxTokens),
    ...formatOf(request),
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
}

function modalitiesOf({ modalities }: ChatRequest): string[] | null {
  if (!Array.isArray(modalities) || modalities.length === 0) return null;
  return modalities.flatMap((name) => (typeof name === 'string' ? [name.toUpperCase()] : []));
}

function formatOf({ response_format: format }: ChatRequest): Record<string, unknown> {
  if (format?.type === 'json_object') return { responseMimeType: 'application/json' };
  if (format?.type !== 'json_schema') return {};
  const { schema } = format.json_schema;
  return { responseMimeType: 'application/json', ...(schema === undefined ? {} : { responseJsonSchema: schema }) };
}

function toTools({ tools = [], tool_choice: choice }: ChatRequest): Record<string, unknown> | null {
  if (tools.length === 0) return null;
  const functionDeclarations = tools.map(({ function: { name, description, parameters } }) => ({
    name,
    ...(description === undefined ? {} : { description }),
    ...(parameters === undefined ? {} : { parametersJsonSchema: parameters }),
  }));
  const isStrict = tools.some(({ function: { strict } }) => strict === true);
  const functionCallingConfig = callingOf(choice, isStrict);
  return { tools: [{ functionDeclarations }], ...(functionCallingConfig === null ? {} : { toolConfig: { functionCallingConfig } }) };
}

function callingOf(choice: ChatRequest['tool_choice'], isStrict: boolean): Record<string, unknown> | null {
  if (choice === 'none') return { mode: 'NONE' };
  if (choice === 'required') return { mode: 'ANY' };
  if (typeof choice === 'object') return { mode: 'ANY', allowedFunctionNames: [choice.function.name] };
  if (isStrict) return { mode: 'VALIDATED' };
  return choice === 'auto' ? { mode: 'AUTO' } : null;
}
