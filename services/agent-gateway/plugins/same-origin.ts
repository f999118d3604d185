import type { IncomingHttpHeaders } from 'node:http';

/** Whether a browser states that a page of this server sends the request. */
export function isFromItsOwnOrigin(headers: IncomingHttpHeaders): boolean {
  return originOf(headers) === 'same';
}

/** Whether a browser states that a page of another server sends the request. */
export function isFromAnotherOrigin(headers: IncomingHttpHeaders): boolean {
  return originOf(headers) === 'other';
}

/** Scripts can set neither header. Browsers omit the first over plain http, and both are absent from requests of programs. */
function originOf({ 'sec-fetch-site': site, origin, host }: IncomingHttpHeaders): 'same' | 'other' | 'unknown' {
  if (site !== undefined) return site === 'same-origin' ? 'same' : 'other';
  if (origin === undefined) return 'unknown';
  // A proxy may have ended TLS, so the scheme that the page has is not known here.
  return host !== undefined && (origin === `https://${host}` || origin === `http://${host}`) ? 'same' : 'other';
}
