import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { mintGenerationId, readGenerationId } from './generation-id.ts';

const parts = { houseSecret: 'secret', origin: 'g1a2b3c', keyId: 'key-one', nowMs: 1_700_000_000_000 };

describe('mintGenerationId', () => {
  it('never returns the same id twice, even within a millisecond', () => {
    const ids = new Set(Array.from({ length: 1_000 }, () => mintGenerationId(parts)));

    expect(ids.size).toBe(1_000);
  });

  it('is one token of a subject, with the origin and the time', () => {
    const id = mintGenerationId(parts);

    expect(id).toMatch(/^gen-g1a2b3c-[0-9A-HJKMNP-TV-Z]{26}-[0-9a-f]{20}$/);
    expect(id.split('-')[2]?.slice(0, 10)).toBe(
      mintGenerationId({ ...parts, keyId: 'another' })
        .split('-')[2]
        ?.slice(0, 10),
    );
  });

  it('binds the id to the key and the deployment, so that neither another key nor another deployment has the same tag', () => {
    const [, , ulid, tag] = mintGenerationId(parts).split('-');
    const tagOf = (secret: string, keyId: string) => createHmac('sha256', secret).update(`${ulid}${keyId}`).digest('hex').slice(0, 20);

    expect(tag).toBe(tagOf('secret', 'key-one'));
    expect(tag).not.toBe(tagOf('secret', 'key-two'));
    expect(tag).not.toBe(tagOf('mouse', 'key-one'));
  });
});

describe('readGenerationId', () => {
  it('returns the origin of the call, and the time', () => {
    expect(readGenerationId(mintGenerationId(parts), parts)).toEqual({ origin: 'g1a2b3c', atMs: 1_700_000_000_000 });
  });

  it.each([
    ['another key', { ...parts, keyId: 'key-two' }],
    ['another deployment', { ...parts, houseSecret: 'mouse' }],
  ])('finds none with %s', (_case, reader) => {
    expect(readGenerationId(mintGenerationId(parts), reader)).toBeNull();
  });

  it('finds none when a letter of it is changed', () => {
    const id = mintGenerationId(parts);
    for (let index = id.lastIndexOf('-') - 26; index < id.length; index += 1) {
      const changed = `${id.slice(0, index)}${id[index] === '0' ? '1' : '0'}${id.slice(index + 1)}`;

      expect(readGenerationId(changed, parts), changed).toBeNull();
    }
  });

  it.each(['', 'gen', 'gen-1-01ARZ3NDEKTSV4RRFFQ69G5FAV-0', `${'x'.repeat(1_000)}`])('finds none in %j', (text) => {
    expect(readGenerationId(text, parts)).toBeNull();
  });
});
