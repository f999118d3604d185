import { describe, expect, it, vi } from 'vitest';
import { type AdapterUnderTest, IMPATIENT, WAIT } from './under-test.ts';

export function lateFailureCases(underTest: () => AdapterUnderTest): void {
  describe('failures in the middle', () => {
    it.each(['cut', 'ends-early', 'stall', 'malformed', 'error-event'] as const)('yields what came before a fault (%s), then throws', async (fault) => {
      const { failure, text, parts } = await underTest().run({ text: ['one ', 'two ', 'three'], fault, after: 2 }, IMPATIENT);
      expect(text).toBe('one two ');
      expect(failure).toMatchObject({ code: 'router.provider_unavailable' });
      expect(parts.some((part) => part.type === 'finish')).toBe(false);
    });

    it('refuses a line that never ends', async () => {
      const { failure } = await underTest().run({ fault: 'endless-line', after: 0 });
      expect(failure).toMatchObject({ code: 'router.provider_unavailable' });
      await vi.waitFor(() => expect(underTest().upstream.aborts).toBe(1), WAIT);
    });
  });
}
