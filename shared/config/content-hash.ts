import { createHash } from 'node:crypto';
import { canonicalJson } from './canonical-json.ts';

/** sha256 of the canonical JSON, in hex: independent of machine and of key order. */
export function contentHash(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}
