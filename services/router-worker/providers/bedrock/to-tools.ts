import type { ChatRequest, ChatTool } from '#shared/contracts/router/chat-request.ts';
import { closedSchema } from '../anthropic/closed-schema.ts';
import { cacheControlOf } from '../anthropic/to-blocks.ts';
import { type Marked, marked } from './blocks.ts';
import type { BedrockTraits } from './model-traits.ts';
import type { MarkedMessage } from './to-messages.ts';

interface ToolSpec {
  toolSpec: { name: string; description?: string; inputSchema: { json: Record<string, unknown> }; strict?: true };
}

type ToolChoice = { auto: object } | { any: object } | { tool: { name: string } };

export interface ToolOptions {
  traits: BedrockTraits;
  messages: readonly MarkedMessage[];
  /** An answer by this schema is asked for, and the model has no such format: a tool takes its place. */
  answerSchema: Record<string, unknown> | null;
}

export interface Tools {
  tools: Marked<ToolSpec>[];
  choice: ToolChoice | null;
  /** The tool whose arguments are the answer; null: none. */
  answerTool: string | null;
  isForced: boolean;
  /** Tools are listed for the calls of the conversation, and none may be called: the API has no such choice, so the model is told. */
  isForbidden: boolean;
}

/** Without tools where none may be called, unless the conversation has calls: then the API requires them. */
export function toTools(request: ChatRequest, options: ToolOptions): Tools {
  const given = (request.tools ?? []).map((tool) => toTool(tool, options.traits));
  const mayCall = given.length > 0 && request.tool_choice !== 'none';
  const called = calledTools(options.messages);
  const tools = mayCall || called.length > 0 ? (given.length > 0 ? given : called) : [];
  const choice = mayCall ? toChoice(request, options.traits) : null;
  const isForced = choice !== null && !('auto' in choice);
  if (options.answerSchema !== null && !isForced) return withAnswerTool(tools, options.answerSchema, { mayCall, canForce: options.traits.takesForcedTool });
  return { tools, choice, answerTool: null, isForced, isForbidden: !mayCall && tools.length > 0 };
}

function toTool({ function: { name, description, parameters, strict }, ...tool }: ChatTool, { takesSchema }: BedrockTraits): Marked<ToolSpec> {
  const isStrict = strict === true && takesSchema;
  const schema = { properties: {}, ...parameters, type: 'object' };
  const toolSpec = {
    name,
    ...(description === undefined || description === '' ? {} : { description }),
    inputSchema: { json: isStrict ? closedSchema(schema) : schema },
    ...(isStrict ? { strict: true as const } : {}),
  };
  return marked({ toolSpec }, cacheControlOf(tool));
}

function calledTools(messages: readonly MarkedMessage[]): Marked<ToolSpec>[] {
  const names = new Set(messages.flatMap(({ content }) => content.flatMap(({ item }) => ('toolUse' in item ? [item.toolUse.name] : []))));
  return [...names].map((name) => ({ item: { toolSpec: { name, inputSchema: { json: { type: 'object', properties: {} } } } } }));
}

function toChoice({ tool_choice: choice }: ChatRequest, { takesForcedTool }: BedrockTraits): ToolChoice | null {
  if (choice === undefined) return null;
  if (choice === 'auto' || choice === 'none' || !takesForcedTool) return { auto: {} };
  return choice === 'required' ? { any: {} } : { tool: { name: choice.function.name } };
}

function withAnswerTool(tools: Marked<ToolSpec>[], schema: Record<string, unknown>, { mayCall, canForce }: { mayCall: boolean; canForce: boolean }): Tools {
  const name = tools.some(({ item }) => item.toolSpec.name === 'json') ? 'json_answer' : 'json';
  const description = 'Takes the answer. Every answer is given by calling it.';
  const answerTool: Marked<ToolSpec> = { item: { toolSpec: { name, description, inputSchema: { json: { ...schema, type: 'object' } } } } };
  const choice: ToolChoice = !canForce ? { auto: {} } : mayCall ? { any: {} } : { tool: { name } };
  return { tools: [...tools, answerTool], choice, answerTool: name, isForced: canForce, isForbidden: false };
}
