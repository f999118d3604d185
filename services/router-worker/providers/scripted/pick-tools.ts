import type { ChatRequest, ChatTool } from '#shared/contracts/router/chat-request.ts';
import type { Conversation } from './conversation.ts';
import { type SchemaNode, type Suggest, sampleOf } from './sample-schema.ts';
import { contentWords } from './words.ts';

export interface PickedCall {
  name: string;
  /** JSON. */
  arguments: string;
}

const MAX_CALLS = 16;
/** Words shared with a description that select a tool; one shared with its name is enough. */
const MIN_SHARED_WORDS = 2;
/** Over all tools in order: they are read in the same tick as the messages. */
const MAX_READ_CHARS_OF_DESCRIPTIONS = 64 * 1024;
const NAMES_TOOL = /\bcall\s+["'`]?([\w.-]+)["'`]?/gi;
/** Fields that take the user's whole text. */
const WHOLE_TEXT = /^(query|question|q|text|message|prompt|input|search|search_query|content|body|description|reason|summary)$/i;

/** The tool calls for the last message; empty when the model should answer, as after tool results. */
export function pickTools(request: ChatRequest, conversation: Conversation): PickedCall[] {
  const { tools = [], tool_choice: choice } = request;
  if (tools.length === 0 || choice === 'none' || conversation.results.length > 0) return [];
  const { last } = conversation;
  const requested = requestedByName(tools, last);
  if (typeof choice === 'object') {
    const named = tools.find((tool) => tool.function.name === choice.function.name);
    if (named === undefined) return [];
    return [requested.find(({ name }) => name === named.function.name) ?? callWithText(named, last)];
  }
  if (requested.length > 0) return requested;
  const fitting = bestFit(tools, last) ?? (choice === 'required' ? tools[0] : undefined);
  return fitting === undefined ? [] : [callWithText(fitting, last)];
}

/** `call <tool>`, optionally followed by its arguments as JSON. */
function requestedByName(tools: readonly ChatTool[], text: string): PickedCall[] {
  const calls: PickedCall[] = [];
  // The first tool of a name counts.
  const byName = new Map(tools.toReversed().map((tool) => [tool.function.name, tool]));
  for (const match of text.matchAll(NAMES_TOOL)) {
    const tool = byName.get(match[1] ?? '');
    if (calls.length >= MAX_CALLS) break;
    if (tool === undefined) continue;
    const behind = text.slice(match.index + match[0].length);
    const given = jsonObjectAt(behind);
    calls.push(given === null ? callWithText(tool, behind) : { name: tool.function.name, arguments: given });
  }
  return calls;
}

/** The JSON object at the start of a text, verbatim; null when there is none. */
function jsonObjectAt(text: string): string | null {
  const start = /^\s*(?:with\s+)?\{/.exec(text);
  if (start === null) return null;
  const from = start[0].length - 1;
  let depth = 0;
  let inString = false;
  for (let at = from; at < text.length; at += 1) {
    const character = text[at];
    if (inString) {
      if (character === '\\') at += 1;
      else if (character === '"') inString = false;
      continue;
    }
    if (character === '"') inString = true;
    else if (character === '{') depth += 1;
    else if (character === '}') depth -= 1;
    if (depth > 0) continue;
    const candidate = text.slice(from, at + 1);
    return isJson(candidate) ? candidate : null;
  }
  return null;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function bestFit(tools: readonly ChatTool[], text: string): ChatTool | undefined {
  const words = contentWords(text);
  let best: ChatTool | undefined;
  let bestScore = 0;
  let leftChars = MAX_READ_CHARS_OF_DESCRIPTIONS;
  for (const tool of tools) {
    const description = (tool.function.description ?? '').slice(0, leftChars);
    leftChars -= description.length;
    const nameWords = contentWords(tool.function.name.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').replaceAll(/[_.-]+/g, ' '));
    const inName = [...nameWords].filter((word) => words.has(word)).length;
    const inDescription = [...contentWords(description)].filter((word) => words.has(word) && !nameWords.has(word)).length;
    const score = inName * MIN_SHARED_WORDS + inDescription;
    if (score < MIN_SHARED_WORDS || score <= bestScore) continue;
    best = tool;
    bestScore = score;
  }
  return best;
}

function callWithText(tool: ChatTool, text: string): PickedCall {
  const { name, parameters } = tool.function;
  const value = parameters === undefined ? {} : sampleOf({ type: 'object', ...parameters }, suggestFrom(text));
  return { name, arguments: JSON.stringify(value) };
}

/** Suggests values from text: `key: value` first, then options, numbers and quoted texts in order, each used once. */
export function suggestFrom(text: string): Suggest {
  const numbers = [...text.matchAll(/(?<![\w.-])-?\d+(?:\.\d+)?(?![\w-]|\.\d)/g)].map(([found]) => Number(found));
  const quotes = [...text.matchAll(/"([^"]{1,500})"|“([^”]{1,500})”|(?<!\w)'([^']{1,500})'(?!\w)/g)].map((match) => match[1] ?? match[2] ?? match[3] ?? '');
  return (name, schema, isRequired) => {
    const types = [schema.type ?? 'string'].flat();
    const written = writtenFor(name, text);
    const option = schema.enum?.find((value) => typeof value === 'string' && (written ?? text).toLowerCase().includes(value.toLowerCase()));
    if (schema.enum !== undefined) return option;
    if (types.includes('boolean')) return written === null ? undefined : /^(true|yes|on|1)$/i.test(written);
    if (types.includes('integer') || types.includes('number')) {
      const value = written !== null && Number.isFinite(Number(written)) ? Number(written) : isRequired ? numbers.shift() : undefined;
      return value !== undefined && types.includes('integer') && !types.includes('number') ? Math.round(value) : value;
    }
    if (!types.includes('string')) return undefined;
    const isFree = isRequired && schema.format === undefined;
    return written ?? valueByFormat(name, schema, text) ?? (isFree ? (quotes.shift() ?? freeValue(name, text)) : undefined);
  };
}

/** The value in `key: value`, `key=value` or `key is value`; quoted, it may contain spaces. */
function writtenFor(name: string, text: string): string | null {
  if (!/^[\w.-]{1,64}$/.test(name)) return null;
  const key = name.replaceAll(/[.]/g, '\\.').replaceAll(/[_-]/g, '[ _-]');
  const found = new RegExp(`\\b${key}\\s*(?:[:=]|\\bis\\b)\\s*(?:"([^"]*)"|'([^']*)'|([^\\s,;]+))`, 'i').exec(text);
  return found?.[1] ?? found?.[2] ?? found?.[3]?.replace(/[.!?]$/, '') ?? null;
}

/** By format or name: an e-mail address, a date, a URL, an id. */
function valueByFormat(name: string, { format }: SchemaNode, text: string): string | null {
  const find = (pattern: RegExp) => pattern.exec(text)?.[0] ?? null;
  if (format === 'email' || /e-?mail/i.test(name)) return find(/[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/);
  if (format === 'date' || /date|day/i.test(name)) return find(/\b\d{4}-\d{2}-\d{2}\b/);
  if (format === 'uri' || format === 'url' || /url|link/i.test(name)) return find(/https?:\/\/\S{1,500}/);
  if (/id$|number|code|reference|sku|order/i.test(name)) return find(/\b[A-Z]{1,8}-?\d[\dA-Z-]{0,30}\b/) ?? find(/(?<=#)\w{1,40}/) ?? find(/\b\d{3,20}\b/);
  return null;
}

/** The whole message, a name after a preposition, or any name. */
function freeValue(name: string, text: string): string | undefined {
  if (WHOLE_TEXT.test(name)) return text.trim() === '' ? undefined : text.trim();
  const properName = /\b(?:in|for|from|to|at|of|about|near|on)\s+((?:\p{Lu}[\p{L}'-]{0,40})(?:\s+\p{Lu}[\p{L}'-]{0,40}){0,3})/u.exec(text)?.[1];
  return properName ?? /(?<=\s)\p{Lu}[\p{L}'-]{1,40}/u.exec(text)?.[0];
}
