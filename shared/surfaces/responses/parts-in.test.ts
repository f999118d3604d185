import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ProviderPart } from '../../contracts/router/provider-part.ts';
import { type Answer, addPart, emptyAnswer } from '../answer.ts';
import { dataIn } from '../parts/text-in.ts';
import { responses } from './surface.ts';

const head = { id: 'gen-1', created: 1, model: 'a/one', provider: 'A', request: { messages: [] }, now: () => 2 };
const text = fc.string({ minLength: 1, unit: 'grapheme' });
const part: fc.Arbitrary<ProviderPart> = fc.oneof(
  text.map((it): ProviderPart => ({ type: 'text-delta', text: it })),
  text.map((it): ProviderPart => ({ type: 'reasoning-delta', text: it })),
  text.map((it): ProviderPart => ({ type: 'refusal-delta', text: it })),
  text.map((it): ProviderPart => ({ type: 'tool-call-delta', index: 0, arguments: it })),
);
const call: ProviderPart = { type: 'tool-call-start', index: 0, id: 'call_1', name: 'look' };

function sizesOf({ textChars, reasoningChars, refusalChars, toolCalls }: Answer) {
  return { textChars, reasoningChars, refusalChars, toolCalls: toolCalls.filter(Boolean) };
}

const eventsOf = (sse: string) => dataIn(Buffer.from(sse, 'utf8'));

it('counts in the events of a response what its parts had', () => {
  fc.assert(
    fc.property(fc.array(part), (parts) => {
      const [given, read] = [emptyAnswer(false), emptyAnswer(false)];
      const writer = responses.partWriter(head, given);
      for (const one of [call, ...parts]) {
        addPart(given, one);
        for (const value of eventsOf(writer.parts([one]))) for (const found of responses.partsIn?.(value) ?? []) addPart(read, found);
      }
      expect(sizesOf(read)).toEqual(sizesOf(given));
    }),
  );
});

it('finds which endpoint answered, at the beginning and in any text that is written whole, and what it used', () => {
  const answer = emptyAnswer();
  const writer = responses.partWriter(head, answer);
  const of = { model: 'a/one', provider: 'A' };
  const [created] = eventsOf(writer.parts([{ type: 'text-delta', text: 'a' }]));
  const [delta] = eventsOf(writer.parts([{ type: 'text-delta', text: 'b' }]));
  expect([responses.statedIn?.(created), responses.statedIn?.(delta)]).toMatchObject([of, of]);

  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, prompt_tokens_details: { cached_tokens: 1, cache_write_tokens: 1 }, cost: 0.5 };
  const counted = { prompt_tokens: 3, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 1, cache_write_tokens: 1 }, cost: 0.5 };
  const last = eventsOf(writer.done(answer, usage)).findLast((value) => value !== undefined);
  expect(responses.statedIn?.(last)).toMatchObject({ ...of, usage: counted });
  expect(responses.statedIn?.(JSON.parse(responses.wholeBody(answer, head, usage)))).toMatchObject({ ...of, usage: counted });
});

it.each([undefined, null, 'text', {}, { type: 'response.output_text.delta', delta: 1 }, { type: 'error' }])('finds nothing in %j', (value) => {
  expect(responses.partsIn?.(value)).toEqual([]);
});
