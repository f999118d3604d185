import { keyMask } from './key-mask.ts';

const MASK = '[redacted]';
/** Errors nest a level or two; past this it is a text that was made to be long. */
const MAX_DEPTH = 16;
/** Masks of keys that are kept: making one compiles expressions of some 10 KB, which takes longer than all else of an error. */
const MAX_CACHED_MASKS = 64;

/** Scheme, user and password, host and path, query and fragment. Slashes may be escaped, as in JSON inside of a text. */
const URL_IN_TEXT = /\b([a-z][a-z0-9+.-]{0,20}:\\?\/\\?\/)(?:[^\s"'<>/?#@\\]*@)?([^\s"'<>?#@]*)([?#][^\s"'<>]*)?/gi;
/** A parameter that stands alone, as in the path of a request. */
const SECRET_PARAMETER = /([?&][a-z0-9_.-]{0,40}(?:key|token|secret|signature|sig|password|credential)=)[^\s&"'<>]+/gi;

/**
 * An upstream's own error as others may see it: the texts in it without the credential that we sent, however it is encoded (key-mask.ts), and
 * URLs without user, password, query and fragment, since addresses of resources often carry a right to read them.
 *
 * @param apiKey null when we sent none
 */
export function withoutSecrets(value: unknown, apiKey: string | null): unknown {
  return masked(value, apiKey === null || apiKey === '' ? (text) => text : maskOf(apiKey), 0);
}

/** Of the keys of the configuration, by key. */
const masks = new Map<string, (text: string) => string>();

function maskOf(apiKey: string): (text: string) => string {
  const mask = masks.get(apiKey) ?? keyMask(apiKey, MASK);
  if (masks.size < MAX_CACHED_MASKS) masks.set(apiKey, mask);
  return mask;
}

function masked(value: unknown, maskKey: (text: string) => string, depth: number): unknown {
  if (typeof value === 'string') return maskedText(value, maskKey);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return '…';
  if (Array.isArray(value)) return value.map((item) => masked(item, maskKey, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [maskedText(name, maskKey), masked(field, maskKey, depth + 1)]));
}

function maskedText(text: string, maskKey: (text: string) => string): string {
  return maskKey(text)
    .replace(URL_IN_TEXT, (_, scheme: string, host: string, rest: string | undefined) => `${scheme}${host}${rest === undefined ? '' : `${rest[0]}${MASK}`}`)
    .replace(SECRET_PARAMETER, `$1${MASK}`);
}
