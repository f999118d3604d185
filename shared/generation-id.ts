import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { ulid, ulidTimeMs } from './ids.ts';

/** 80 bits, like the ULID's random part, and short enough to copy. */
const TAG_HEX_DIGITS = 20;
const GENERATION_ID = /^gen-([A-Za-z][A-Za-z0-9]{0,31})-([0-9A-HJKMNP-TV-Z]{26})-([0-9a-f]{20})$/;

export interface GenerationIdParts {
  /** For many ids a key: Node converts a text for each tag, a fifth of its cost. */
  houseSecret: string | KeyObject;
  /** The gateway's id: letters and digits only, so that the generation id can be parsed. */
  origin: string;
  keyId: string;
  nowMs: number;
}

/**
 * `gen-<origin>-<ulid>-<tag>`: the public id of a client's router call, one subject token. The tag is an HMAC over ULID and key id: only a process with
 * HOUSE_SECRET can make an id that a key may read.
 */
export function mintGenerationId({ houseSecret, origin, keyId, nowMs }: GenerationIdParts): string {
  const id = ulid(nowMs);
  return `gen-${origin}-${id}-${tagOf(houseSecret, id, keyId)}`;
}

/** Whether it has the form of an id of any key. */
export function isGenerationId(text: string): boolean {
  return GENERATION_ID.test(text);
}

/** Null when malformed, or of another key: the two can't be distinguished. */
export function readGenerationId(
  generationId: string,
  { houseSecret, keyId }: { houseSecret: string; keyId: string },
): { origin: string; atMs: number } | null {
  const [, origin, id, tag] = GENERATION_ID.exec(generationId) ?? [];
  if (origin === undefined || id === undefined || tag === undefined) return null;
  if (!timingSafeEqual(Buffer.from(tag, 'latin1'), Buffer.from(tagOf(houseSecret, id, keyId), 'latin1'))) return null;
  return { origin, atMs: ulidTimeMs(id) };
}

/** The ULID's fixed length makes the concatenation unambiguous. */
function tagOf(houseSecret: string | KeyObject, id: string, keyId: string): string {
  return createHmac('sha256', houseSecret).update(`${id}${keyId}`).digest('hex').slice(0, TAG_HEX_DIGITS);
}
