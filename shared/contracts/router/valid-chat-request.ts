import { type ChatRequest, chatRequest, hasLogprobsForTop } from './chat-request.ts';

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const isFlag: Check = (value) => typeof value === 'boolean';
const isTokenLimit: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 1;
const isBetween =
  (least: number, most: number): Check =>
  (value) =>
    typeof value === 'number' && value >= least && value <= most;

/** Of the fields that most requests have. The schema itself checks values that these refuse, and all other fields. */
const quickChecks: Record<string, Check> = {
  messages: (value) => Array.isArray(value) && value.length > 0 && value.every(isValidMessage),
  model: (value) => typeof value === 'string' && value !== '',
  stream: isFlag,
  stream_options: (value) => isObject(value) && (value.include_usage === undefined || isFlag(value.include_usage)),
  user: isText,
  max_tokens: isTokenLimit,
  max_completion_tokens: isTokenLimit,
  temperature: isBetween(0, 2),
  top_p: isBetween(0, 1),
  frequency_penalty: isBetween(-2, 2),
  presence_penalty: isBetween(-2, 2),
  seed: Number.isSafeInteger,
  stop: (value) => isText(value) || (Array.isArray(value) && value.every(isText)),
  tool_choice: (value) => value === 'auto' || value === 'none' || value === 'required',
  parallel_tool_calls: isFlag,
};
const quickCheckOf = new Map(Object.entries(quickChecks));
const fieldSchemas = new Map(Object.entries(chatRequest.shape));
const messageSchema = chatRequest.shape.messages.element;

/**
 * Validates the body of a request at half of the schema's time: it copies nothing. The schema changes no value, so what passes field by field needs no
 * parse. False leaves the verdict, and the words, to the schema.
 */
export function isValidChatRequest(value: unknown): value is ChatRequest {
  if (!isObject(value)) return false;
  let hasMessages = false;
  for (const name in value) {
    if (name === 'messages') hasMessages = true;
    // The only name that a copy would not keep.
    if (name === '__proto__' || !isValidField(name, value[name])) return false;
  }
  return hasMessages && hasLogprobsForTop(value);
}

function isValidField(name: string, value: unknown): boolean {
  if (quickCheckOf.get(name)?.(value) === true) return true;
  // Unknown fields are kept as they are: clients may be newer.
  return fieldSchemas.get(name)?.safeParse(value).success ?? true;
}

function isValidMessage(value: unknown): boolean {
  return isTextMessage(value) || messageSchema.safeParse(value).success;
}

/** A role and a text, as most messages are. */
function isTextMessage(value: unknown): boolean {
  if (!isObject(value) || typeof value.content !== 'string') return false;
  for (const name in value) if (name !== 'role' && name !== 'content') return false;
  const { role } = value;
  return role === 'user' || role === 'system' || role === 'assistant' || role === 'developer';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
