import { randomBytes } from 'node:crypto';
import { hashOfSecret } from '#shared/keys/caller-key.ts';

const PREFIX = 'sk-sy-v1-';
const SECRET_BYTES = 32;
/** At each end of the random part: 24 of its 256 bits. */
const SHOWN_DIGITS = 3;

export interface NewSecret {
  /** `sk-sy-v1-<64 hex digits>`: sent to its owner once, and stored nowhere. */
  secret: string;
  /** SHA-256 in hex. */
  hash: string;
  /** The masked secret. */
  label: string;
}

export function newSecret(): NewSecret {
  const digits = randomBytes(SECRET_BYTES).toString('hex');
  const secret = `${PREFIX}${digits}`;
  return { secret, hash: hashOfSecret(secret), label: `${PREFIX}${digits.slice(0, SHOWN_DIGITS)}...${digits.slice(-SHOWN_DIGITS)}` };
}
