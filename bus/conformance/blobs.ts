import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { eventually, type UnderTest } from './under-test.ts';

/** Large bodies: stored, read back, unknown ids. */
export function blobCases(underTest: UnderTest): void {
  describe('blobs', () => {
    it('are read byte for byte, whatever their size', async () => {
      const { bus } = underTest();
      for (const sizeBytes of [0, 1, 256 * 1024, 256 * 1024 + 1, 1024 * 1024, 2 * 1024 * 1024 + 17]) {
        const bytes = randomBytes(sizeBytes);
        const id = await bus.blobs.put(bytes);
        const found = await bus.blobs.get(id);
        expect(found === null ? null : Buffer.compare(found, bytes)).toBe(0);
      }
    });

    it('have an id each, even when the bytes are the same', async () => {
      const { bus } = underTest();
      const ids = await Promise.all([bus.blobs.put(Buffer.from('a')), bus.blobs.put(Buffer.from('a'))]);

      expect(ids[0]).not.toBe(ids[1]);
    });

    it('are null for an unknown id', async () => {
      const { bus } = underTest();

      expect(await bus.blobs.get('01ARZ3NDEKTSV4RRFFQ69G5FAV')).toBeNull();
    });
  });
}

/** Large bodies of a bus with short retention. */
export function blobWindowCases(underTest: UnderTest): void {
  describe('blobs: later', () => {
    it('DESIGN 3: a large body is stored for its retention, and then deleted', async () => {
      const { bus, windows, pass } = underTest();
      const id = await bus.blobs.put(randomBytes(600 * 1024));
      await pass(windows.blobMs / 2);
      expect((await bus.blobs.get(id))?.byteLength).toBe(600 * 1024);
      await pass(windows.blobMs);

      expect(
        await eventually(
          () => bus.blobs.get(id),
          (found) => found === null,
        ),
      ).toBeNull();
    });
  });
}
