import { describe, expect, it, vi } from 'vitest';
import { type AdapterUnderTest, GENEROUS_TIMEOUTS, HASTY, IMPATIENT, WAIT } from './under-test.ts';

/** What takes long: upstreams that go silent, and answers of many megabytes. */
export function silenceAndSizeCases(underTest: () => AdapterUnderTest): void {
  describe('an upstream that goes silent', () => {
    it('times out on an upstream that accepts and never answers', async () => {
      const { failure, parts } = await underTest().run({ fault: 'silent' }, HASTY);
      expect(failure).toMatchObject({ code: 'router.provider_unavailable', details: { reason: 'timeout' } });
      expect(parts).toEqual([]);
      await vi.waitFor(() => expect(underTest().upstream.aborts).toBe(1), WAIT);
    });

    it('times out on an upstream that sends headers and no token', async () => {
      const { failure } = await underTest().run({ fault: 'stall', after: 0 }, HASTY);
      expect(failure).toMatchObject({ code: 'router.provider_unavailable', details: { reason: 'timeout' } });
    });

    it('yields what came before a stall, then times out', async () => {
      const { failure, text, parts } = await underTest().run({ text: ['one ', 'two ', 'three'], fault: 'stall', after: 2 }, IMPATIENT);
      expect(text).toBe('one two ');
      expect(failure).toMatchObject({ code: 'router.provider_unavailable', details: { reason: 'timeout' } });
      expect(parts.some((part) => part.type === 'finish')).toBe(false);
    });

    it('does not wait for a connection that stays open after the end', async () => {
      // The idle limit is longer than the test's timeout.
      const { failure, text } = await underTest().run({ usage: 'never', staysOpen: true }, { ...GENEROUS_TIMEOUTS, idleMs: 600_000 });
      expect({ failure, text }).toEqual({ failure: null, text: 'Hello there' });
    });
  });

  describe('a large answer', () => {
    it('refuses a line that never ends', async () => {
      const { failure } = await underTest().run({ fault: 'endless-line', after: 0 });
      expect(failure).toMatchObject({ code: 'router.provider_unavailable' });
      await vi.waitFor(() => expect(underTest().upstream.aborts).toBe(1), WAIT);
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
