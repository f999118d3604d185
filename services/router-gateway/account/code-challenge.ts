import { createHash, timingSafeEqual } from 'node:crypto';

export type ChallengeMethod = 'S256' | 'plain';

export interface Challenge {
  method: ChallengeMethod;
  text: string;
}

/** Whether the verifier is that of the challenge (RFC 7636). A challenge by S256 may be in either alphabet of base64, with or without padding. */
export function isVerifierOf({ method, text }: Challenge, verifier: string): boolean {
  if (method === 'plain') return areEqual(text, verifier);
  return areEqual(urlSafe(text), sha256(verifier).toString('base64url'));
}

function urlSafe(base64: string): string {
  return base64
    .replace(/={1,2}$/, '')
    .replaceAll('+', '-')
    .replaceAll('/', '_');
}

/** Hashes have equal lengths, so the time depends on neither text. */
function areEqual(one: string, other: string): boolean {
  return timingSafeEqual(sha256(one), sha256(other));
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
