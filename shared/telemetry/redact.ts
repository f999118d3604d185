const MASK = '[redacted]';

/** In any spelling: apiKey, api_key, x-api-key, client_secret, set-cookie … */
const SECRET_KEY = /api[-_]?key|secret|password|passphrase|token|authorization|credential|private[-_]?key|cookie/i;

/** Token counts (`prompt_tokens`, `maxTokens`), when the value is a number. */
const TOKEN_COUNT = /tokens$/i;

/** Keys may also be of callers' data. */
const MAX_KNOWN_KEYS = 1_000;
const MAX_KNOWN_CHARACTERS = 64;
const knownKeys = new Map<string, boolean>();

interface RedactLimits {
  depth: number;
  nodes: number;
  /** Of one text. */
  characters: number;
}

/** Of a log line. */
const LOG_LIMITS: RedactLimits = { depth: 8, nodes: 1_000, characters: 8_192 };

const MAX_CAUSES = 8;

/** `://user:password@`, up to the last `@` before the path. Both patterns scan a text a bounded number of times. */
const USERINFO = /:\/\/[^\s/?#"'<>]*@/g;

/** A secret query parameter: `?key=…`, `&access_token=…`. */
const SECRET_PARAMETER = /([?&](?:key|sig|signature|[^=&?#\s]{0,64}?(?:api[-_]?key|secret|password|token|credential)[^=&?#\s]{0,64})=)[^&#\s"'<>]+/gi;

/** Parsers quote their input, which may be customer text. */
const QUOTED = /"[\s\S]*"/;

/** fetch quotes an invalid header's value, such as a key with a line break. */
const QUOTED_HEADER = /"[\s\S]*" is an invalid header value/;

/** Masks credentials of all URLs in a text, and query parameters with secret names. */
export function maskUrl(text: string): string {
  const masked = text.includes('://') ? text.replace(USERINFO, `://${MASK}@`) : text;
  return masked.includes('=') ? masked.replace(SECRET_PARAMETER, `$1${MASK}`) : masked;
}

/**
 * A copy for logs and dumps. Values under secret keys are masked, and URLs as by `maskUrl`. Errors become plain data with codes and causes. Depth,
 * size and text lengths are bounded; cycles, buffers and functions are replaced by a name. Always serializable as JSON.
 */
export function redactSecrets(value: unknown, limits: RedactLimits = LOG_LIMITS): unknown {
  return copyOf(value, { limits, nodesLeft: limits.nodes, path: new Set() });
}

interface Walk {
  limits: RedactLimits;
  nodesLeft: number;
  /** Ancestors of the current value. */
  path: Set<object>;
}

function copyOf(value: unknown, walk: Walk): unknown {
  walk.nodesLeft -= 1;
  if (walk.nodesLeft < 0) return '[too much]';
  switch (typeof value) {
    case 'string':
      return shorten(maskUrl(value), walk);
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
  if (walk.path.size >= walk.limits.depth) return '[too deep]';
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
  const copy: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(record)) {
    const shown = isSecret(key, value) ? MASK : copyOf(value, walk);
    // By an assignment it would become the prototype.
    if (key === '__proto__') Object.defineProperty(copy, key, { value: shown, enumerable: true, configurable: true, writable: true });
    else copy[key] = shown;
    if (walk.nodesLeft < 0) break;
  }
  return copy;
}

/** Null and undefined are shown: whether a secret is set is often the question. */
function isSecret(key: string, value: unknown): boolean {
  if (value === null || value === undefined || !isSecretKey(key)) return false;
  return !(typeof value === 'number' && TOKEN_COUNT.test(key));
}

/** A line is written for each call, and the pattern is the larger part of its redaction: what it says of the keys of our lines is kept. */
function isSecretKey(key: string): boolean {
  const known = knownKeys.get(key);
  if (known !== undefined) return known;
  const isSecret = SECRET_KEY.test(key);
  if (knownKeys.size < MAX_KNOWN_KEYS && key.length <= MAX_KNOWN_CHARACTERS) knownKeys.set(key, isSecret);
  return isSecret;
}

/** With a flattened chain of causes, outermost first. Of an error's own fields only `code`, `details` and `errors` are copied. */
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
  const shown = (text: string) => shorten(maskUrl(withoutQuotes(error, text)), walk);
  return { name: error.name, ...code, message: shown(error.message), ...details, ...errors, stack: shown(error.stack ?? '') };
}

function withoutQuotes(error: Error, text: string): string {
  if (error instanceof SyntaxError) return text.replace(QUOTED, '"…"');
  return error instanceof TypeError ? text.replace(QUOTED_HEADER, '"…" is an invalid header value') : text;
}

function shorten(text: string, { limits: { characters } }: Walk): string {
  return text.length <= characters ? text : `${text.slice(0, characters)}… (${text.length} characters)`;
}
