import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { mintGenerationId } from './generation-id.ts';

const parts = { houseSecret: 'house', origin: 'g1a2b3c', keyId: 'key-one', nowMs: 1_700_000_000_000 };

describe('mintGenerationId', () => {
  it('never gives the same id twice, even within a millisecond', () => {
    const ids = new Set(Array.from({ length: 1_000 }, () => mintGenerationId(parts)));

    expect(ids.size).toBe(1_000);
  });

  it('makes one token of a subject, with the origin and the time in it', () => {
    const id = mintGenerationId(parts);

    expect(id).toMatch(/^gen-g1a2b3c-[0-9A-HJKMNP-TV-Z]{26}-[0-9a-f]{20}$/);
    expect(id.split('-')[2]?.slice(0, 10)).toBe(
      mintGenerationId({ ...parts, keyId: 'another' })
        .split('-')[2]
        ?.slice(0, 10),
    );
  });

  it('ties the id to the key and the house, so that neither another key nor another house has the same tag', () => {
    const [, , ulid, tag] = mintGenerationId(parts).split('-');
    const tagOf = (secret: string, keyId: string) => createHmac('sha256', secret).update(`${ulid}${keyId}`).digest('hex').slice(0, 20);

    expect(tag).toBe(tagOf('house', 'key-one'));
    expect(tag).not.toBe(tagOf('house', 'key-two'));
    expect(tag).not.toBe(tagOf('mouse', 'key-one'));
  });
});
