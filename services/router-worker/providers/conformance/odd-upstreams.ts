import { describe, expect, it } from 'vitest';
import { type AdapterUnderTest, GENEROUS_TIMEOUTS } from './under-test.ts';

export function oddUpstreamCases(underTest: () => AdapterUnderTest): void {
  describe('an unusual upstream', () => {
    it('yields the finish once when the upstream sends it twice', async () => {
      const { failure, parts } = await underTest().run({ isFinishedTwice: true });
      expect(failure).toBeNull();
      expect(parts.filter((part) => part.type === 'finish')).toHaveLength(1);
    });

    it('works without usage', async () => {
      const { failure, text, parts } = await underTest().run({ usage: 'never' });
      expect({ failure, text }).toEqual({ failure: null, text: 'Hello there' });
      expect(parts.some((part) => part.type === 'usage')).toBe(false);
    });

    it('reads usage that comes after the end', async () => {
      const { failure, parts } = await underTest().run({ usage: 'after-end' });
      expect(failure).toBeNull();
      expect(parts.filter((part) => part.type === 'usage')).toHaveLength(1);
    });

    it('ends without an end mark once the answer has finished', async () => {
      const { failure, text } = await underTest().run({ hasNoEndMarker: true });
      expect({ failure, text }).toEqual({ failure: null, text: 'Hello there' });
    });

    it('does not wait for a connection that stays open after the end', async () => {
      // The idle limit is longer than the test's timeout.
      const { failure, text } = await underTest().run({ usage: 'never', staysOpen: true }, { ...GENEROUS_TIMEOUTS, idleMs: 600_000 });
      expect({ failure, text }).toEqual({ failure: null, text: 'Hello there' });
    });

    it('reads a whole answer', async () => {
      const { failure, text, parts } = await underTest().run({ isWhole: true });
      expect({ failure, text }).toEqual({ failure: null, text: 'Hello there' });
      expect(parts.map((part) => part.type)).toEqual(expect.arrayContaining(['finish', 'usage']));
    });

    it.each([{ newline: '\r\n' }, { pieceBytes: 1 }, { newline: '\r\n', pieceBytes: 1 }, { pieceBytes: 7 }] as const)(
      'reads the same text from %o',
      async (framing) => {
        const { failure, text } = await underTest().run({ text: ['Grüße ', '👩‍👩‍👧 ', '漢字', '\u2028\n"\\'], ...framing });
        expect({ failure, text }).toEqual({ failure: null, text: 'Grüße 👩‍👩‍👧 漢字\u2028\n"\\' });
      },
    );

    it('waits for headers that come late', async () => {
      const { failure, text } = await underTest().run({ headersAfterMs: 100 });
      expect({ failure, text }).toEqual({ failure: null, text: 'Hello there' });
    });

    it('refuses a whole answer that is larger than its buffer', async () => {
      const { failure, parts } = await underTest().run({ isWhole: true, text: ['x'.repeat(17 * 1024 * 1024)] });
      expect(failure).toMatchObject({ code: 'router.provider_unavailable' });
      expect(parts).toEqual([]);
    });

    it('reads a piece of ten megabytes', async () => {
      const long = 'x'.repeat(10 * 1024 * 1024);
      const { failure, text } = await underTest().run({ text: [long] });
      expect(failure).toBeNull();
      expect(text === long).toBe(true);
    });
  });
}
