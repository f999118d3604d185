import { createHmac, timingSafeEqual } from 'node:crypto';
import { ulid, ulidTimeMs } from './ids.ts';

/** 80 bits: as many as the random part of the ULID, and short enough for an id that people copy. */
const TAG_HEX_DIGITS = 20;
const GENERATION_ID = /^gen-([A-Za-z][A-Za-z0-9]{0,31})-([0-9A-HJKMNP-TV-Z]{26})-([0-9a-f]{20})$/;

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
  return `gen-${origin}-${id}-${tagOf(houseSecret, id, keyId)}`;
}

/** What a generation id says of its call, or null when it is none, or another key's: the two can't be told apart. */
export function readGenerationId(
  generationId: string,
  { houseSecret, keyId }: { houseSecret: string; keyId: string },
): { origin: string; atMs: number } | null {
  const [, origin, id, tag] = GENERATION_ID.exec(generationId) ?? [];
  if (origin === undefined || id === undefined || tag === undefined) return null;
  if (!timingSafeEqual(Buffer.from(tag, 'latin1'), Buffer.from(tagOf(houseSecret, id, keyId), 'latin1'))) return null;
  return { origin, atMs: ulidTimeMs(id) };
}

/** The ULID has a fixed length, so that no two pairs give the same text. */
function tagOf(houseSecret: string, id: string, keyId: string): string {
  return createHmac('sha256', houseSecret).update(`${id}${keyId}`).digest('hex').slice(0, TAG_HEX_DIGITS);
}
