const MASK = '[redacted]';

/** Keys whose values are secrets, in any spelling: apiKey, api_key, x-api-key, client_secret, set-cookie … */
const SECRET_KEY = /api[-_]?key|secret|password|passphrase|token|authorization|credential|private[-_]?key|cookie/i;

/** `prompt_tokens`, `maxTokens`: how many, when a number stands there. */
const TOKEN_COUNT = /tokens$/i;

/** Bounds of one value in a log line or dump. What lies beyond is named, not shown. */
const MAX_DEPTH = 8;
const MAX_NODES = 1_000;
const MAX_CHARACTERS = 8_192;

/** How much of a chain of causes, or of an aggregate's errors, is shown. */
const MAX_CAUSES = 8;

/** `://user:password@`, up to the last `@` before the path. Neither pattern can be made to scan a text more than a bounded number of times. */
const USERINFO = /:\/\/[^\s/?#"'<>]*@/g;

/** A secret in a query: `?key=…`, `&access_token=…`. */
const SECRET_PARAMETER = /([?&](?:key|sig|signature|[^=&?#\s]{0,64}?(?:api[-_]?key|secret|password|token|credential)[^=&?#\s]{0,64})=)[^&#\s"'<>]+/gi;

/** A parser quotes what it could not read, and that may be anybody's words. */
const QUOTED = /"[\s\S]*"/;

/** fetch quotes the whole of a header that it can't carry, such as one with a key of two lines. */
const QUOTED_HEADER = /"[\s\S]*" is an invalid header value/;

/** Masks the user and password of every URL in a text, and the parameters of queries that carry secrets by their name. */
export function maskUrl(text: string): string {
  const masked = text.includes('://') ? text.replace(USERINFO, `://${MASK}@`) : text;
  return masked.includes('=') ? masked.replace(SECRET_PARAMETER, `$1${MASK}`) : masked;
}

/**
 * A copy of a value that may be shown: in logs, in dumps of the configuration. What stands under a key that names a secret is masked,
 * and URLs in texts are masked as `maskUrl` does. An error becomes plain data with its codes and its chain of causes. Depth, size and
 * length of texts are bounded, circles are cut, and buffers and functions are named only; the copy always fits `JSON.stringify`.
 */
export function redactSecrets(value: unknown): unknown {
  return copyOf(value, { nodesLeft: MAX_NODES, path: new Set() });
}

interface Walk {
  nodesLeft: number;
  /** The objects around the current value: one of these again is a circle. */
  path: Set<object>;
}

function copyOf(value: unknown, walk: Walk): unknown {
  walk.nodesLeft -= 1;
  if (walk.nodesLeft < 0) return '[too much]';
  switch (typeof value) {
    case 'string':
      return shorten(maskUrl(value));
    case 'bigint':
    case 'symbol':
      return String(value);
    case 'function':
      return '[function]';
    case 'object':
      return value === null ? null : copyOfObject(value, walk);
    default:
      return value;
  }
}

function copyOfObject(value: object, walk: Walk): unknown {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? '[invalid date]' : value.toISOString();
  if (value instanceof URL) return maskUrl(value.href);
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (value instanceof Map || value instanceof Set) return `[${value.size} entries]`;
  if (walk.path.has(value)) return '[circular]';
  if (walk.path.size >= MAX_DEPTH) return '[too deep]';
  walk.path.add(value);
  try {
    if (value instanceof Error) return copyOfError(value, walk);
    return Array.isArray(value) ? copyOfList(value, walk) : copyOfRecord(value, walk);
  } finally {
    walk.path.delete(value);
  }
}

function copyOfList(list: readonly unknown[], walk: Walk): unknown[] {
  const copy: unknown[] = [];
  for (const item of list) {
    copy.push(copyOf(item, walk));
    if (walk.nodesLeft < 0) break;
  }
  return copy;
}

function copyOfRecord(record: object, walk: Walk): Record<string, unknown> {
  const copy: [string, unknown][] = [];
  for (const [key, value] of Object.entries(record)) {
    copy.push([key, isSecret(key, value) ? MASK : copyOf(value, walk)]);
    if (walk.nodesLeft < 0) break;
  }
  return Object.fromEntries(copy);
}

/** Nothing set is no secret, and whether something is set is often what one looks for. */
function isSecret(key: string, value: unknown): boolean {
  if (!SECRET_KEY.test(key) || value === null || value === undefined) return false;
  return !(typeof value === 'number' && TOKEN_COUNT.test(key));
}

/** The outermost error, with what caused it below, flat, from the outside in. Other own fields of an error are left out but for our details. */
function copyOfError(error: Error, walk: Walk): Record<string, unknown> {
  const causes: unknown[] = [];
  let cause: unknown = error.cause;
  while (cause !== undefined && cause !== null && causes.length < MAX_CAUSES) {
    causes.push(cause instanceof Error ? oneError(cause, walk) : copyOf(cause, walk));
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return { ...oneError(error, walk), ...(causes.length > 0 ? { causes } : {}) };
}

function oneError(error: Error, walk: Walk): Record<string, unknown> {
  const code = 'code' in error && (typeof error.code === 'string' || typeof error.code === 'number') ? { code: error.code } : {};
  const details = 'details' in error ? { details: copyOf(error.details, walk) } : {};
  const errors = error instanceof AggregateError ? { errors: error.errors.slice(0, MAX_CAUSES).map((one) => copyOf(one, walk)) } : {};
  const shown = (text: string) => shorten(maskUrl(withoutQuotes(error, text)));
  return { name: error.name, ...code, message: shown(error.message), ...details, ...errors, stack: shown(error.stack ?? '') };
}

function withoutQuotes(error: Error, text: string): string {
  if (error instanceof SyntaxError) return text.replace(QUOTED, '"…"');
  return error instanceof TypeError ? text.replace(QUOTED_HEADER, '"…" is an invalid header value') : text;
}

function shorten(text: string): string {
  return text.length <= MAX_CHARACTERS ? text : `${text.slice(0, MAX_CHARACTERS)}… (${text.length} characters)`;
}
