import { expect, it } from 'vitest';
import { wrapPrint } from './wrap-print.mjs';

function printed(pieces: readonly string[], columns: number | undefined): string {
  let text = '';
  const print = wrapPrint((piece) => {
    text += piece;
  }, columns);
  for (const piece of pieces) print(piece);
  print('\n');
  return text;
}

it.each([
  ['a word that has no room goes to the next line, wherever the pieces end', ['one tw', 'o thr', 'ee'], 9, 'one two \nthree'],
  ['a line that is full has no blank behind it', ['one two', ' three'], 7, 'one two\nthree'],
  ['a word that is wider than a line begins one, and is left to the terminal', ['a ', 'wide-word b'], 5, 'a \nwide-word\nb'],
  ['lines of the text stay', ['one\n\ntwo three'], 9, 'one\n\ntwo three'],
  ['nothing is changed where the output is no terminal', ['one tw', 'o three'], undefined, 'one two three'],
] as const)('%s', (_, pieces, columns, expected) => {
  expect(printed(pieces, columns)).toBe(`${expected}\n`);
});
