import { describe, expect, it } from 'vitest';
import { type AdapterUnderTest, API_KEY, ODD_NUMBERS } from './under-test.ts';

/** Some upstreams give summaries alone. */
const REASONING = /^reasoning-(?:summary-)?delta$/;

export function plainAnswerCases(underTest: () => AdapterUnderTest): void {
  describe('a healthy upstream', () => {
    it('yields text, then one finish, and the usage', async () => {
      const { failure, text, parts } = await underTest().run({});
      expect({ failure, text }).toEqual({ failure: null, text: 'Hello there' });
      expect(parts.filter((part) => part.type !== 'text-delta')).toEqual(
        expect.arrayContaining([
          { type: 'finish', reason: 'stop', nativeReason: expect.any(String) },
          {
            type: 'usage',
            usage: expect.objectContaining({
              promptTokens: 12,
              completionTokens: 5,
              cachedTokens: 3,
              reasoningTokens: underTest().target.countsReasoning ? 1 : 0,
              ...(underTest().target.countsCacheWrites ? { cacheWriteTokens: 4 } : {}),
            }),
          },
        ]),
      );
    });

    it.each(['stop', 'length', 'content_filter'] as const)('yields the reason %s', async (finish) => {
      const { failure, parts } = await underTest().run({ finish });
      expect(failure).toBeNull();
      expect(parts.filter((part) => part.type === 'finish')).toEqual([{ type: 'finish', reason: finish, nativeReason: expect.any(String) }]);
    });

    it('yields reasoning separate from text', async () => {
      const { parts } = await underTest().run({ reasoning: ['hm', 'm'], text: ['yes'] });
      expect(parts.slice(0, 3)).toMatchObject([
        { type: expect.stringMatching(REASONING), text: 'hm' },
        { type: expect.stringMatching(REASONING), text: 'm' },
        { type: 'text-delta', text: 'yes' },
      ]);
    });

    it('yields tool calls numbered from 0, each with its arguments as JSON', async () => {
      const toolCalls = [
        { id: 'call_a', name: 'look', arguments: ['{"at":', '"a"}'] },
        { id: 'call_b', name: 'listen', arguments: [] },
      ];
      const { failure, parts } = await underTest().run({ text: [], toolCalls, finish: 'tool_calls' });
      expect(failure).toBeNull();
      expect(parts.filter((part) => part.type === 'tool-call-start')).toEqual([
        { type: 'tool-call-start', index: 0, id: 'call_a', name: 'look' },
        { type: 'tool-call-start', index: 1, id: 'call_b', name: 'listen' },
      ]);
      const argumentsOf = (index: number) => parts.map((part) => (part.type === 'tool-call-delta' && part.index === index ? part.arguments : '')).join('');
      expect([argumentsOf(0), argumentsOf(1)]).toEqual(['{"at":"a"}', '{}']);
      expect(parts.findLast((part) => part.type === 'finish')).toMatchObject({ reason: 'tool_calls' });
    });

    it('DESIGN 8: yields the numbers of tool calls as they are written, in whatever pieces they come', async () => {
      for (const pieceBytes of [1, 7, 100_000]) {
        const toolCalls = [{ id: 'call_a', name: 'look', arguments: [ODD_NUMBERS.slice(0, 12), ODD_NUMBERS.slice(12, 60), ODD_NUMBERS.slice(60)] }];
        const { failure, parts } = await underTest().run({ text: [], toolCalls, finish: 'tool_calls', pieceBytes });
        expect(failure).toBeNull();
        expect(parts.map((part) => (part.type === 'tool-call-delta' ? part.arguments : '')).join('')).toBe(ODD_NUMBERS);
      }
    });

    it('never yields an empty batch or an empty delta', async () => {
      const { batches } = await underTest().run({ text: ['', 'a', '', 'b'] });
      expect(batches.every((batch) => batch.length > 0)).toBe(true);
      expect(batches.flat().filter((part) => part.type === 'text-delta')).toHaveLength(2);
    });

    it('uses its connections again', async () => {
      for (let time = 0; time < 6; time += 1) expect((await underTest().run({})).failure).toBeNull();
      // A call right behind another may find its connection still busy.
      expect(underTest().upstream.connections).toBeLessThanOrEqual(2);
    });

    it('sends the credential, and shows a body without it', async () => {
      await underTest().run({});
      expect(JSON.stringify(underTest().upstream.requests[0]?.headers)).toContain(API_KEY);
      expect(underTest().adapter.upstreamBody(underTest().callOf({}))).toEqual(underTest().upstream.requests[0]?.body);
      expect(JSON.stringify(underTest().upstream.requests[0]?.body)).not.toContain(API_KEY);
    });
  });
}
