import { describe, expect, it } from 'vitest';
import type { AdapterUnderTest } from './under-test.ts';

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

    it('reads a whole answer', async () => {
      const { failure, text, parts } = await underTest().run({ isWhole: true });
      expect({ failure, text }).toEqual({ failure: null, text: 'Hello there' });
      expect(parts).toEqual(expect.arrayContaining([{ type: 'finish', reason: 'stop', nativeReason: expect.any(String) }]));
      expect(parts.flatMap((part) => (part.type === 'usage' ? [part.usage] : []))).toMatchObject([
        { promptTokens: 12, completionTokens: 5, cachedTokens: 3, reasoningTokens: underTest().target.countsReasoning ? 1 : 0 },
      ]);
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
  });
}
