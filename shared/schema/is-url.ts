/** The linear parts of the `ajv-formats` expression (https://gist.github.com/dperini/729294). */
const SCHEME = /^(?:https?|ftp):\/\//iu;
const HOST =
  /(?:(?!(?:10|127)(?:\.\d{1,3}){3})(?!(?:169\.254|192\.168)(?:\.\d{1,3}){2})(?!172\.(?:1[6-9]|2\d|3[0-1])(?:\.\d{1,3}){2})(?:[1-9]\d?|1\d\d|2[01]\d|22[0-3])(?:\.(?:1?\d{1,2}|2[0-4]\d|25[0-5])){2}(?:\.(?:[1-9]\d?|1\d\d|2[0-4]\d|25[0-4]))|(?:(?:[a-z0-9\u{00a1}-\u{ffff}]+-)*[a-z0-9\u{00a1}-\u{ffff}]+)(?:\.(?:[a-z0-9\u{00a1}-\u{ffff}]+-)*[a-z0-9\u{00a1}-\u{ffff}]+)*(?:\.(?:[a-z\u{00a1}-\u{ffff}]{2,})))(?::\d{2,5})?(?=\/|$)/iuy;

/**
 * Whether a text has the format `url`: http, https or ftp, a public host, no whitespace. Linear: user information ends at an `@` and a
 * host has none, so each stretch between two `@` is matched once.
 */
export function isUrl(text: string): boolean {
  const scheme = SCHEME.exec(text)?.[0];
  if (scheme === undefined || /\s/u.test(text)) return false;
  for (let start = scheme.length; start > 0; start = text.indexOf('@', Math.max(start, scheme.length + 1)) + 1) {
    HOST.lastIndex = start;
    if (HOST.test(text)) return true;
  }
  return false;
}
