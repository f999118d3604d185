import { LRUCache } from 'lru-cache';
import { keyMask } from './key-mask.ts';

/** One or several; null: none. */
export type Secrets = string | readonly string[] | null;

const MASK = '[redacted]';
/** Errors nest a level or two. */
const MAX_DEPTH = 16;
/** Compiling a mask (10 KB of expressions) takes longer than the rest of an error's handling. One that was dropped is compiled again with the next error. */
const MAX_CACHED_MASKS = 256;

/** Scheme, user and password, host and path, query and fragment. Slashes may be JSON-escaped. */
const URL_IN_TEXT = /\b([a-z][a-z0-9+.-]{0,20}:\\?\/\\?\/)(?:[^\s"'<>/?#@\\]*@)?([^\s"'<>?#@]*)([?#][^\s"'<>]*)?/gi;
/** A parameter outside of a URL, as in a request's path. */
const SECRET_PARAMETER = /([?&][a-z0-9_.-]{0,40}(?:key|token|secret|signature|sig|password|credential)=)[^\s&"'<>]+/gi;

/**
 * Masks an upstream's error: our credentials in any encoding (key-mask.ts), and user, password, query and fragment of URLs, since signed URLs grant access.
 *
 * @param secrets null when none was sent
 */
export function withoutSecrets(value: unknown, secrets: Secrets): unknown {
  const all = typeof secrets === 'string' ? [secrets] : (secrets ?? []);
  const maskers = all.filter((secret) => secret !== '').map(maskOf);
  return masked(value, (text) => maskers.reduce((rest, mask) => mask(rest), text), 0);
}

/** By key. The least recently used is dropped, such as that of a key that was replaced. */
const masks = new LRUCache<string, (text: string) => string>({ max: MAX_CACHED_MASKS });

function maskOf(apiKey: string): (text: string) => string {
  const mask = masks.get(apiKey) ?? keyMask(apiKey, MASK);
  masks.set(apiKey, mask);
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
