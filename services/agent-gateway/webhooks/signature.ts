import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** As a manifest or a routine declares it. */
export interface SignatureRule {
  header: string;
  algorithm: 'sha256' | 'sha1' | 'sha512';
  prefix: string;
}

/** Signs in place of a secret that is not set, so that its absence takes as long as a wrong signature. */
const NO_SECRET = randomBytes(32);

/**
 * Whether the header is there once and has `<prefix><lower-case hex HMAC of the bytes>`. Compares in constant time.
 * @param rawHeaders names and values in turn, as received: Node joins or drops repeated ones elsewhere
 * @param secret null: it is not set, and nothing is signed with it
 */
export function isSigned(body: Uint8Array, rawHeaders: readonly string[], { header, algorithm, prefix }: SignatureRule, secret: string | null): boolean {
  const hmac = createHmac(algorithm, secret ?? NO_SECRET);
  const expected = Buffer.from(`${prefix}${hmac.update(body).digest('hex')}`, 'utf8');
  const given = onlyValueOf(header, rawHeaders);
  // Node decodes headers as latin1: this restores the bytes.
  const received = given === null ? null : Buffer.from(given, 'latin1');
  const hasLength = received !== null && received.byteLength === expected.byteLength;
  const isEqual = timingSafeEqual(expected, hasLength ? received : expected);
  return isEqual && hasLength && secret !== null;
}

/** Whether the header is there once: without it the body need not be read. */
export function hasSignature(rawHeaders: readonly string[], { header }: SignatureRule): boolean {
  return onlyValueOf(header, rawHeaders) !== null;
}

/** Null: it is missing, or repeated. */
function onlyValueOf(header: string, rawHeaders: readonly string[]): string | null {
  const name = header.toLowerCase();
  let found: string | null = null;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() !== name) continue;
    if (found !== null) return null;
    found = rawHeaders[at + 1] ?? '';
  }
  return found;
}
