import { expect, it } from 'vitest';
import { COLUMNS, wrapLines } from './wrap-words.ts';

it('wraps each line of a message by itself, indented two columns more, and loses no word', () => {
  const words = (count: number) => Array.from({ length: count }, (_, index) => `word-${index}`).join(' ');
  const text = `A title:\n  ${words(40)}\n  short`;
  const lines = wrapLines(text).split('\n');

  expect(lines.filter((line) => line.length > COLUMNS)).toEqual([]);
  expect([lines[0], lines.at(-1)]).toEqual(['A title:', '  short']);
  expect(lines.slice(2, -1).every((line) => /^ {4}word/.test(line))).toBe(true);
  expect(lines.join(' ').split(/\s+/)).toEqual(text.split(/\s+/));
});

it('puts a word that is wider than a terminal on a separate line', () => {
  expect(wrapLines(`at ${'x'.repeat(100)} it is`)).toBe(`at\n  ${'x'.repeat(100)}\n  it is`);
});
