import type { ChatRequest, ChatTool } from '#shared/contracts/router/chat-request.ts';
import type { UserLocation } from '#shared/contracts/router/search-limits.ts';
import { askedSearch, MAX_NATIVE_SEARCHES } from '#shared/credit/web-searches.ts';
import type { CacheControl, Message } from './blocks.ts';
import { closedSchema } from './closed-schema.ts';
import type { ModelTraits } from './model-traits.ts';
import { cacheControlOf } from './to-blocks.ts';

interface ApiTool {
  name: string;
  description?: string;
  input_schema: Record<string, unknown>;
  strict?: true;
  eager_input_streaming?: true;
  cache_control?: CacheControl;
}

type ApiToolChoice =
  | { type: 'auto' | 'any'; disable_parallel_tool_use?: true }
  | { type: 'tool'; name: string; disable_parallel_tool_use?: true }
  | { type: 'none' };

/** Run by the upstream. */
interface SearchTool {
  type: 'web_search_20250305';
  name: 'web_search';
  max_uses: number;
  allowed_domains?: readonly string[];
  blocked_domains?: readonly string[];
  user_location?: UserLocation;
  cache_control?: CacheControl;
}

function searchTool(request: ChatRequest): SearchTool {
  const { include_domains: included, exclude_domains: excluded, user_location: location } = askedSearch(request)?.limits ?? {};
  return {
    type: 'web_search_20250305',
    name: 'web_search',
    max_uses: MAX_NATIVE_SEARCHES,
    ...(included && { allowed_domains: included }),
    ...(excluded && { blocked_domains: excluded }),
    ...(location && { user_location: location }),
  };
}

export interface ToolOptions {
  traits: ModelTraits;
  isEager: boolean;
  messages: readonly Message[];
  /** An answer by this schema is asked for, and the model has no such format: a tool takes its place. */
  answerSchema: Record<string, unknown> | null;
  searchesWeb: boolean;
}

export interface Tools {
  tools: (ApiTool | SearchTool)[];
  choice: ApiToolChoice | null;
  /** The tool whose arguments are the answer; null: none. */
  answerTool: string | null;
  isForced: boolean;
}

export function toTools(request: ChatRequest, options: ToolOptions): Tools {
  const functions = functionTools(request, options);
  if (!options.searchesWeb) return functions;
  // A choice of none for want of functions would also forbid the search.
  const isUncallable = request.tools === undefined || request.tools.length === 0;
  return { ...functions, tools: [...functions.tools, searchTool(request)], choice: isUncallable && functions.choice === NO_TOOL ? null : functions.choice };
}

function functionTools(request: ChatRequest, options: ToolOptions): Tools {
  const tools = (request.tools ?? []).map((tool) => toTool(tool, options));
  // Calls in the conversation require tools, which some clients omit after the last call.
  if (tools.length === 0) tools.push(...calledTools(options.messages));
  const isUncallable = request.tools === undefined || request.tools.length === 0;
  const choice = isUncallable ? (tools.length === 0 ? null : NO_TOOL) : toChoice(request, options.traits);
  if (options.answerSchema !== null && choice?.type !== 'any' && choice?.type !== 'tool') {
    return withAnswerTool(tools, options.answerSchema, { mayCall: !isUncallable && choice?.type !== 'none', canForce: options.traits.takesForcedTool });
  }
  return { tools, choice, answerTool: null, isForced: choice?.type === 'any' || choice?.type === 'tool' };
}

const NO_TOOL = { type: 'none' } as const;

function toTool({ function: { name, description, parameters, strict }, ...tool }: ChatTool, { traits, isEager }: ToolOptions): ApiTool {
  const isStrict = strict === true && traits.takesSchema;
  const schema = { properties: {}, ...parameters, type: 'object' };
  const mark = cacheControlOf(tool);
  return {
    name,
    ...(description === undefined ? {} : { description }),
    input_schema: isStrict ? closedSchema(schema) : schema,
    ...(isStrict ? { strict: true } : {}),
    ...(isEager ? { eager_input_streaming: true } : {}),
    ...(mark === undefined ? {} : { cache_control: mark }),
  };
}

function calledTools(messages: readonly Message[]): ApiTool[] {
  const names = new Set(messages.flatMap(({ content }) => content.flatMap((block) => (block.type === 'tool_use' ? [block.name] : []))));
  return [...names].map((name) => ({ name, input_schema: { type: 'object', properties: {} } }));
}

function toChoice({ tool_choice: choice, parallel_tool_calls: isParallel }: ChatRequest, { takesForcedTool }: ModelTraits): ApiToolChoice | null {
  const single = isParallel === false ? { disable_parallel_tool_use: true as const } : {};
  if (choice === 'none') return NO_TOOL;
  if (choice === undefined || choice === 'auto' || !takesForcedTool) return isParallel === false || choice !== undefined ? { type: 'auto', ...single } : null;
  return choice === 'required' ? { type: 'any', ...single } : { type: 'tool', name: choice.function.name, ...single };
}

function withAnswerTool(tools: ApiTool[], schema: Record<string, unknown>, { mayCall, canForce }: { mayCall: boolean; canForce: boolean }): Tools {
  const names = new Set(tools.map(({ name }) => name));
  const name = names.has('json') ? 'json_answer' : 'json';
  const answerTool: ApiTool = { name, description: 'Takes the answer. Every answer is given by calling it.', input_schema: { ...schema, type: 'object' } };
  const choice: ApiToolChoice = !canForce ? { type: 'auto' } : mayCall ? { type: 'any' } : { type: 'tool', name };
  return { tools: [...tools, answerTool], choice: { ...choice, disable_parallel_tool_use: true }, answerTool: name, isForced: canForce };
}
