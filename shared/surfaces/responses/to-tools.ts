import type { ChatPlugin, ChatRequest, ChatTool } from '../../contracts/router/chat-request.ts';
import type { ResponsesRequest, ResponsesTool } from '../../contracts/router/responses-request.ts';

type FunctionTool = Extract<ResponsesTool, { type: 'function' }>;
type ToolChoice = ResponsesRequest['tool_choice'];
type AllowedTools = { type: 'allowed_tools'; mode: 'auto' | 'required'; tools: { type: string; name?: string | undefined }[] };

/** The functions that the model may call, and which of them it is to call. */
export function toTools({ tools, tool_choice: choice }: ResponsesRequest): Pick<ChatRequest, 'tools' | 'tool_choice'> {
  const functions = (tools ?? []).filter(isFunction);
  const allowed = isAllowedTools(choice) ? functions.filter(({ name }) => choice.tools.some((tool) => tool.name === name)) : functions;
  const chosen = choiceOf(choice);
  return {
    ...(allowed.length > 0 && { tools: allowed.map(toolOf) }),
    ...(chosen !== null && { tool_choice: chosen }),
  };
}

/** The plugin that the tool of the router is; null: it is not among the tools. */
export function webSearchIn({ tools }: ResponsesRequest): ChatPlugin | null {
  const tool = tools?.find((one) => !isFunction(one));
  if (tool === undefined || isFunction(tool)) return null;
  const { filters, user_location: location } = tool;
  return { id: 'web', ...(filters?.allowed_domains && { include_domains: filters.allowed_domains }), ...(location && { user_location: location }) };
}

/** Null: text, as without one. */
export function formatOf(format: NonNullable<ResponsesRequest['text']>['format']): NonNullable<ChatRequest['response_format']> | null {
  switch (format?.type) {
    case 'json_object':
      return { type: 'json_object' };
    case 'json_schema': {
      const { name, description, schema, strict } = format;
      return {
        type: 'json_schema',
        json_schema: {
          name,
          ...(typeof description === 'string' && { description }),
          ...(schema && { schema }),
          ...(typeof strict === 'boolean' && { strict }),
        },
      };
    }
    default:
      return null;
  }
}

function toolOf({ name, description, parameters, strict }: FunctionTool): ChatTool {
  return {
    type: 'function',
    function: {
      name,
      ...(typeof description === 'string' && { description }),
      ...(parameters && { parameters }),
      ...(typeof strict === 'boolean' && { strict }),
    },
  };
}

/** Null: the model decides. The router's own search runs whether it is chosen or not. */
function choiceOf(choice: ToolChoice): NonNullable<ChatRequest['tool_choice']> | null {
  if (choice === null || choice === undefined) return null;
  if (typeof choice === 'string') return choice;
  if (isAllowedTools(choice)) return choice.mode;
  return choice.type === 'function' && typeof choice.name === 'string' ? { type: 'function', function: { name: choice.name } } : null;
}

function isAllowedTools(choice: ToolChoice): choice is AllowedTools {
  return typeof choice === 'object' && choice?.type === 'allowed_tools';
}

function isFunction(tool: ResponsesTool): tool is FunctionTool {
  return tool.type === 'function';
}
