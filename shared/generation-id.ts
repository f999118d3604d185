import { createHmac } from 'node:crypto';
import { ulid } from './ids.ts';

/** 80 bits: as many as the random part of the ULID, and short enough for an id that people copy. */
const TAG_HEX_DIGITS = 20;

export interface GenerationIdParts {
  houseSecret: string;
  /** Id of the gateway that mints: letters and digits only, so that the id can be taken apart again. */
  origin: string;
  /** The key that makes the call. */
  keyId: string;
  nowMs: number;
}

/**
 * `gen-<origin>-<ulid>-<tag>`: names one model call, and is one token of a subject. The tag ties it to the key that made the call:
 * whoever holds the house secret can recompute it, nobody else can make an id that is theirs to read.
 */
export function mintGenerationId({ houseSecret, origin, keyId, nowMs }: GenerationIdParts): string {
  const id = ulid(nowMs);
  // The ULID has a fixed length, so that no two pairs give the same text.
  const tag = createHmac('sha256', houseSecret).update(`${id}${keyId}`).digest('hex').slice(0, TAG_HEX_DIGITS);
  return `gen-${origin}-${id}-${tag}`;
}
