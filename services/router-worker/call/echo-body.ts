import { ExactJson } from '../providers/exact-numbers.ts';

const MASK = '[redacted]';
const SECRET_KEY = /^(?:.*[-_])?(?:api[-_]?key|secret|password|authorization|credentials?|access[-_]?token)$/i;
/** Bytes of files and images: useless for debugging, and private. */
const DATA_URL = /^data:([\w.+/-]{1,100})[^,]{0,200},/;
const BASE64 = /^[A-Za-z0-9+/=_-]+$/;
/** Shorter runs may be words. */
const MIN_BASE64_CHARS = 256;
/** Requests nest a few levels, JSON schemas of tools some more. */
const MAX_DEPTH = 48;

/** An upstream body for `debug.echo_upstream_body`, with secrets and file contents masked. */
export function echoBody(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return echoText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return '…';
  if (value instanceof ExactJson) return echoExact(value, depth);
  if (Array.isArray(value)) return value.map((item) => echoBody(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [key, SECRET_KEY.test(key) && typeof field === 'string' ? MASK : echoBody(field, depth + 1)]),
  );
}

/** Shown as it is sent, unless something is masked in it. */
function echoExact(json: ExactJson, depth: number): unknown {
  const sent = json.parsed();
  const shown = echoBody(sent, depth);
  return JSON.stringify(shown) === JSON.stringify(sent) ? json : shown;
}

function echoText(text: string): string {
  const file = DATA_URL.exec(text);
  if (file !== null) return `data:${file[1]},${MASK} (${text.length} characters)`;
  return text.length >= MIN_BASE64_CHARS && BASE64.test(text) ? `${MASK} (${text.length} characters)` : text;
}
