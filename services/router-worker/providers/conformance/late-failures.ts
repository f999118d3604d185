import { describe, expect, it } from 'vitest';
import type { AdapterUnderTest } from './under-test.ts';

export function lateFailureCases(underTest: () => AdapterUnderTest): void {
  describe('failures in the middle', () => {
    it.each(['cut', 'ends-early', 'malformed', 'error-event'] as const)('yields what came before a fault (%s), then throws', async (fault) => {
      const { failure, text, parts } = await underTest().run({ text: ['one ', 'two ', 'three'], fault, after: 2 });
      expect(text).toBe('one two ');
      expect(failure).toMatchObject({ code: 'router.provider_unavailable' });
      expect(parts.some((part) => part.type === 'finish')).toBe(false);
    });

    it.each(['cut', 'malformed', 'error-event'] as const)('yields reasoning that came before a fault (%s), then throws', async (fault) => {
      const { failure, parts, text } = await underTest().run({ reasoning: ['let me ', 'see'], text: ['one'], fault, after: 0 });
      expect(failure).toMatchObject({ code: 'router.provider_unavailable' });
      const reasoning = parts.map((part) => ('text' in part ? part.text : '')).join('');
      expect({ text, reasoning, finishes: parts.filter((part) => part.type === 'finish') }).toEqual({ text: '', reasoning: 'let me see', finishes: [] });
    });
  });
}
