import { describe, expect, it } from 'vitest';
import { contentWords } from '../words.ts';
import { sharedWords } from './question.ts';

const LEAK = 'The customer says that the machine leaks, smokes, sparks or smells burnt, or that water reached the plug';

describe('a condition that is judged by shared words', () => {
  it.each<[string, string, boolean]>([
    ['all words of one alternative', 'My machine leaks and I want a refund', true],
    ['a third of all words', 'There are smoke and sparks, and it smells', true],
    ['one word of an alternative', 'How do I clean the machine?', false],
    ['an alternative of a single word', 'Is it normal that it sparks?', false],
    ['no word', 'Where is my parcel?', false],
  ])('holds or not with %s', (_, text, holds) => {
    expect(sharedWords(LEAK, contentWords(text)).holds).toBe(holds);
  });
});
