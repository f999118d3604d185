import { randomUUID } from 'node:crypto';
import { hasInexactNumber, mayBeInexact } from '#shared/inexact-number.ts';
import { jsonTokens } from '#shared/json-tokens.ts';

/** Beside `structuredContent` in a result of a tool: its JSON as the server has written it. Its random part is not known to a server, which could add it, too. */
export const STRUCTURED_TEXT = `switchyard/structuredText/${randomUUID()}`;

const RESULT = '"result"';
const STRUCTURED = '"structuredContent"';
const TOKEN = /["{}[\],:]/g;

/**
 * A JSON-RPC message before the MCP client parses it, which rounds numbers that cannot be kept exactly, and reads those that exceed all doubles as infinite: a
 * structured result with such a number gets its own text beside it. Any other message is returned as it is. In linear time.
 * @param json valid JSON
 */
export function withStructuredText(json: string): string {
  if (!mayNeedStructuredText(json)) return json;
  const span = structuredSpan(json);
  if (span === null) return json;
  const text = json.slice(span.start, span.end).trim();
  if (!hasInexactNumber(text)) return json;
  return `${json.slice(0, span.end)},${JSON.stringify(STRUCTURED_TEXT)}:${JSON.stringify(text)}${json.slice(span.end)}`;
}

/** False: `withStructuredText` returns it as it is. Of any text, be it JSON or not, and at little cost. */
export function mayNeedStructuredText(text: string): boolean {
  return text.includes(STRUCTURED) && mayBeInexact(text);
}

/** Where the value of `result.structuredContent` stands, the last one as in parsing; null: there is none. A message may stand in a list. */
function structuredSpan(json: string): { start: number; end: number } | null {
  /** Keys of the objects around, as they are written; null: a list, or before the first key. */
  const keys: (string | null)[] = [];
  let string: string | null = null;
  let start: number | null = null;
  let span: { start: number; end: number } | null = null;
  const isAtMember = () => {
    const depth = keys[0] === null ? 1 : 0;
    return keys.length === depth + 2 && keys[depth] === RESULT && keys[depth + 1] === STRUCTURED;
  };
  for (const { text: token, index } of jsonTokens(json, TOKEN)) {
    if (token === '{' || token === '[') keys.push(null);
    else if (token === ':') {
      keys[keys.length - 1] = string;
      if (isAtMember()) start = index + 1;
    } else if (token === ',' || token === '}' || token === ']') {
      if (start !== null && isAtMember()) {
        span = { start, end: index };
        start = null;
      }
      if (token !== ',') keys.pop();
    } else string = token;
  }
  return span;
}
