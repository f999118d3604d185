import { describe, expect, it, vi } from 'vitest';
import { type AdapterUnderTest, GENEROUS_TIMEOUTS, isOfAnswer, NEVER_ABORTED, WAIT } from './under-test.ts';

export function leavingCases(underTest: () => AdapterUnderTest): void {
  describe('an abort of the caller', () => {
    const leave = new Error('left');

    it('sends no request when the signal is aborted already', async () => {
      const { thrown } = await underTest().run({}, GENEROUS_TIMEOUTS, AbortSignal.abort(leave));
      expect(thrown).toBe(leave);
      expect(underTest().upstream.requests).toHaveLength(0);
    });

    it.each([
      ['before headers', { fault: 'silent' }],
      ['before the first token', { fault: 'stall', after: 0 }],
      ['in the middle', { fault: 'stall', after: 1 }],
    ] as const)('closes the upstream’s connection at once %s, and throws the reason', async (_, scenario) => {
      const controller = new AbortController();
      const running = underTest().run(scenario, GENEROUS_TIMEOUTS, controller.signal);
      await vi.waitFor(() => expect(underTest().upstream.requests).toHaveLength(1), WAIT);
      controller.abort(leave);
      const { thrown } = await running;
      expect(thrown).toBe(leave);
      await vi.waitFor(() => expect(underTest().upstream.aborts).toBe(1), WAIT);
    });

    it('closes the upstream’s connection when the consumer stops, and ends', async () => {
      underTest().upstream.answer({ text: ['one ', 'two '], fault: 'stall', after: 1 });
      const received: unknown[] = [];
      await underTest().adapter.stream(underTest().callOf({}), NEVER_ABORTED, (parts) => {
        const said = parts.filter(isOfAnswer);
        if (said.length === 0) return true;
        received.push(said);
        return false;
      });
      expect(received).toEqual([[{ type: 'text-delta', text: 'one ' }]]);
      await vi.waitFor(() => expect(underTest().upstream.aborts).toBe(1), WAIT);
    });
  });
}
