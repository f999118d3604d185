import { z } from 'zod';

/** A DNS name (other scripts in `xn--` form), an IPv4 address, or an IPv6 address in brackets. */
const HOST = String.raw`(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?|\[[0-9A-Fa-f:.]+\])`;
const MAX_HOST_LENGTH = 260;

const BARE_HOST = new RegExp(`^(?!.*\\.\\.)${HOST}$`);
const SCHEME_HOST = new RegExp(`^https?://(?!.*\\.\\.)${HOST}$`);
const ANY_HOST = new RegExp(`^(?:https?://)?(?!.*\\.\\.)${HOST}$`);
/** No `@` in the authority: a user name or password would be a literal credential. */
const HTTP_URL = /^https?:\/\/[^\s/?#@\\]+(?:[/?#]\S*)?$/;

const host = z.string().max(MAX_HOST_LENGTH);

export const bareHost = host.regex(BARE_HOST, 'must be a bare host name, without scheme, port, path or query');

export const schemeHost = host.regex(SCHEME_HOST, 'must be http:// or https:// and a host name, without port, path or query');

/** Default scheme: `http://`. */
export const hostWithOptionalScheme = host
  .regex(ANY_HOST, 'must be a host name, with or without http:// or https:// before it, and without port, path or query')
  .overwrite((text) => (text.includes('://') ? text : `http://${text}`));

const urlExpected = 'must be a URL that starts with http:// or https:// and holds no user name or password';
export const httpUrl = z
  .string()
  .regex(HTTP_URL, urlExpected)
  .refine((text) => !HTTP_URL.test(text) || URL.canParse(text), urlExpected);

export const port = z.number().int().min(1).max(65_535);

export const urlPath = z.string().regex(/^\/\S*$/, 'must start with / and hold no spaces');

/**
 * An allow-list entry: a host, or `.host` for it and its subdomains. Normalised to lower case and `xn--` form without trailing dot, so
 * that entries compare as texts.
 */
export const allowListEntry = host
  .overwrite(toWireForm)
  .regex(new RegExp(`^\\.?(?!.*\\.\\.)${HOST}$`), 'must be a host name, or .host for a host and all below it, without scheme, port or path');

function toWireForm(entry: string): string {
  const below = entry.startsWith('.');
  const name = (below ? entry.slice(1) : entry).toLowerCase().replace(/\.$/, '');
  return `${below ? '.' : ''}${toAscii(name)}`;
}

/** Converts other scripts to `xn--`. An inconvertible name is returned unchanged, for the pattern to refuse. */
function toAscii(name: string): string {
  if (!/[^ -~]/.test(name) || /[\s/:?#@\\[\]%]/.test(name)) return name;
  const url = `http://${name}`;
  return URL.canParse(url) ? new URL(url).hostname : name;
}
