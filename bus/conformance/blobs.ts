import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { advance, type UnderTest } from './under-test.ts';

export function blobCases(underTest: UnderTest): void {
  describe('blobs', () => {
    it('come back byte for byte, whatever their size', async () => {
      const { bus } = underTest();
      for (const sizeBytes of [0, 1, 1024 * 1024, 2 * 1024 * 1024 + 17]) {
        const bytes = randomBytes(sizeBytes);
        const id = await bus.blobs.put(bytes);
        const found = await bus.blobs.get(id);
        expect(found === null ? null : Buffer.compare(found, bytes)).toBe(0);
      }
    });

    it('are each their own, even when the bytes are the same', async () => {
      const { bus } = underTest();
      const ids = await Promise.all([bus.blobs.put(Buffer.from('a')), bus.blobs.put(Buffer.from('a'))]);

      expect(ids[0]).not.toBe(ids[1]);
    });

    it('are null when nobody knows the id', async () => {
      const { bus } = underTest();

      expect(await bus.blobs.get('01ARZ3NDEKTSV4RRFFQ69G5FAV')).toBeNull();
    });
  });
}

export function blobClockCases(underTest: UnderTest): void {
  describe('blobs: a day later', () => {
    it('are gone, and only then', async () => {
      const held = underTest();
      const id = await held.bus.blobs.put(Buffer.from('a'));
      advance(held, 23 * 3_600_000);
      expect(await held.bus.blobs.get(id)).not.toBeNull();
      advance(held, 2 * 3_600_000);

      expect(await held.bus.blobs.get(id)).toBeNull();
    });
  });
}
