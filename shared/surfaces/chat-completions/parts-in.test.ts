import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ProviderPart } from '../../contracts/router/provider-part.ts';
import { type Answer, addPart, emptyAnswer } from '../answer.ts';
import { dataIn } from '../parts/text-in.ts';
import { chatCompletions } from './surface.ts';

const head = { id: 'gen-1', created: 1, model: 'a/one', provider: 'A', request: { messages: [] }, now: () => 2 };
const text = fc.string({ minLength: 1, unit: 'grapheme' });
const part: fc.Arbitrary<ProviderPart> = fc.oneof(
  text.map((it): ProviderPart => ({ type: 'text-delta', text: it })),
  text.map((it): ProviderPart => ({ type: 'reasoning-delta', text: it })),
  text.map((it): ProviderPart => ({ type: 'refusal-delta', text: it })),
  text.map((it): ProviderPart => ({ type: 'tool-call-start', index: 0, id: 'call_1', name: it })),
  text.map((it): ProviderPart => ({ type: 'tool-call-delta', index: 0, arguments: it })),
);

function sizesOf({ textChars, reasoningChars, refusalChars, toolCalls }: Answer) {
  return { textChars, reasoningChars, refusalChars, toolCalls };
}

it('counts in the events of an answer what its parts had', () => {
  fc.assert(
    fc.property(fc.array(part), (parts) => {
      const [given, read] = [emptyAnswer(false), emptyAnswer(false)];
      const writer = chatCompletions.partWriter(head, given);
      for (const one of parts) {
        addPart(given, one);
        const events = Buffer.from(writer.parts([one]), 'utf8');
        for (const value of dataIn(events)) for (const found of chatCompletions.partsIn?.(value) ?? []) addPart(read, found);
      }
      expect(sizesOf(read)).toEqual(sizesOf(given));
    }),
  );
});

it.each([undefined, null, 'text', {}, { choices: [{ delta: { content: 1 } }] }, { choices: [], usage: {} }])('finds nothing in %j', (value) => {
  expect(chatCompletions.partsIn?.(value)).toEqual([]);
});
