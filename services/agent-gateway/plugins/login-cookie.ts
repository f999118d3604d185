/** Has the agent's key: its powers are those of the bearer token. */
export const LOGIN_COOKIE = 'agent_auth';

const MAX_AGE_SECONDS = 12 * 60 * 60;
/** Of the same name: pages of sibling domains may add some. */
const MAX_VALUES = 4;
/** What a cookie's value may not have (RFC 6265), and the sign of the encoding. */
const ENCODED = /[^\x21\x23\x24\x26-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]/gu;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;

/** The values of a cookie's name, decoded. A value that is not well-formed is left out. @param header Node's, with all of a request's cookies */
export function cookieValues(header: string | undefined, name: string): Buffer[] {
  const values: Buffer[] = [];
  for (const pair of header?.split(';') ?? []) {
    const at = pair.indexOf('=');
    if (at < 0 || pair.slice(0, at).trim() !== name || values.length === MAX_VALUES) continue;
    try {
      values.push(Buffer.from(decodeURIComponent(pair.slice(at + 1).trim()), 'utf8'));
    } catch {
      // Not a value of ours.
    }
  }
  return values;
}

/** @param host of the request: browsers keep a `Secure` cookie on loopback http only where the specification is new enough */
export function loginCookie(key: string, host: string | undefined): string {
  return `${LOGIN_COOKIE}=${key.replace(ENCODED, (character) => encodeURIComponent(character))}; Max-Age=${MAX_AGE_SECONDS}${attributes(host)}`;
}

export function clearedCookie(host: string | undefined): string {
  return `${LOGIN_COOKIE}=; Max-Age=0${attributes(host)}`;
}

function attributes(host: string | undefined): string {
  return `; Path=/; HttpOnly; SameSite=Strict${LOOPBACK.test(host ?? '') ? '' : '; Secure'}`;
}
