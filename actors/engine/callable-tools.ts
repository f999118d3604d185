import type { ListedTool } from '#bus/messages/tool.ts';
import { cleanText } from '#shared/clean-text.ts';
import type { ChatTool } from '#shared/contracts/router/chat-request.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { compileSchema, nestingViolation } from '#shared/json-schema.ts';
import type { Violation } from '#shared/schema/violation.ts';

/** Upstreams' limit per request, functions that are no tools included. Tools that a selector names individually are kept first. */
const MAX_FUNCTIONS = 128;
const MAX_NAME_CHARS = 64;
/** Of the name's characters, kept for the tool's part when both parts are long. */
const MAX_TOOL_PART_CHARS = 48;
/** Upstreams' limit. */
const MAX_DESCRIPTION_CHARS = 1_024;

interface CallableToolsInput {
  /** `server:tool`, or `server:*` for all of a server. */
  selectors: readonly string[];
  /** By server: its tools, and their list's hash. */
  lists: Readonly<Record<string, { hash: string; tools: readonly ListedTool[] }>>;
  /** Functions that are no tools; no tool can take their names. */
  own: readonly ChatTool[];
}

/** The functions that a model may call. */
export interface CallableTools {
  /** Tools ordered by id, then those that are no tools; equal inputs give equal lists in any process. */
  functions: ChatTool[];
  /** Null for an unknown name and for functions that are no tools. */
  toolOf(functionName: string): CallableTool | null;
}

export interface CallableTool {
  /** `server:tool`. */
  toolId: string;
  listHash: string;
  /** A schema that can't be compiled: checks only the nesting depth. */
  validate(args: unknown): Violation | null;
}

/**
 * Gives each selected tool a function name of `[A-Za-z0-9_-]{1,64}`: `server__tool`, with a numeric suffix on a collision. Names are stable while
 * the lists are, which the tool loop fixes at its start.
 */
export function callableTools({ selectors, lists, own }: CallableToolsInput): CallableTools {
  const reserved = new Set(own.map((one) => one.function.name));
  const byName = new Map<string, SelectedTool>();
  for (const tool of selectedTools(selectors, lists, MAX_FUNCTIONS - own.length)) {
    byName.set(
      freeName(nameOf(tool), (name) => reserved.has(name) || byName.has(name)),
      tool,
    );
  }
  return {
    functions: [...[...byName].map(([name, { listed }]) => functionOf(name, listed)), ...own],
    toolOf: (name) => byName.get(name) ?? null,
  };
}

interface SelectedTool extends CallableTool {
  server: string;
  listed: ListedTool;
}

/** Each tool once, ordered by code units of the id: the order of selectors and lists has no effect. */
function selectedTools(selectors: readonly string[], lists: CallableToolsInput['lists'], most: number): SelectedTool[] {
  const named = new Set(selectors);
  const tools = new Map<string, SelectedTool>();
  for (const [server, { hash, tools: listed }] of Object.entries(lists)) {
    for (const tool of listed) {
      const toolId = `${server}:${tool.name}`;
      const isSelected = named.has(toolId) || named.has(`${server}:*`);
      if (isSelected && !tools.has(toolId)) tools.set(toolId, { toolId, listHash: hash, validate: validatorOf(tool), server, listed: tool });
    }
  }
  const inOrder = (left: SelectedTool, right: SelectedTool) => (left.toolId < right.toolId ? -1 : 1);
  const all = [...tools.values()].sort(inOrder);
  const isNamed = ({ toolId }: SelectedTool) => named.has(toolId);
  const retained = [...all.filter(isNamed), ...all.filter((tool) => !isNamed(tool))].slice(0, most);
  return retained.sort(inOrder);
}

/** Compiled on first use: most tools are never called. */
function validatorOf({ inputSchema }: ListedTool): CallableTool['validate'] {
  return (args) => {
    try {
      return compileSchema(inputSchema)(args);
    } catch (error) {
      // The server validates the arguments itself.
      if (error instanceof SwitchyardError) return nestingViolation(args);
      throw error;
    }
  };
}

function nameOf({ server, listed }: SelectedTool): string {
  const tool = plain(listed.name).slice(0, Math.max(MAX_TOOL_PART_CHARS, MAX_NAME_CHARS - 2 - server.length));
  const name = `${plain(server).slice(0, MAX_NAME_CHARS - 2 - tool.length)}__${tool}`;
  // Some upstreams require a leading letter or underscore.
  return /^[A-Za-z_]/.test(name) ? name : `_${name}`.slice(0, MAX_NAME_CHARS);
}

function plain(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_-]/g, '_');
}

function freeName(requested: string, isUsed: (name: string) => boolean): string {
  let name = requested;
  // Ends: finitely many names are used.
  for (let number = 2; isUsed(name); number += 1) {
    const ending = `_${number}`;
    name = requested.slice(0, MAX_NAME_CHARS - ending.length) + ending;
  }
  return name;
}

function functionOf(name: string, { description, title, inputSchema }: ListedTool): ChatTool {
  const text = cleanText((description ?? title ?? '').slice(0, MAX_DESCRIPTION_CHARS));
  const parameters = parametersOf(inputSchema);
  return { type: 'function', function: text === '' ? { name, parameters } : { name, description: text, parameters } };
}

/** Some upstreams require `type: object` and `properties`. */
export function parametersOf(schema: Record<string, unknown>): Record<string, unknown> {
  return { type: 'object', properties: {}, ...schema };
}
