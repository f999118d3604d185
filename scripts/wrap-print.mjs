/**
 * A printer that wraps streamed text between words, which a terminal would break within. A word is printed once a space or a line end follows it.
 *
 * @param {(text: string) => void} print
 * @param {number | undefined} columns of the terminal; undefined: not a terminal, nothing is wrapped
 * @returns {(text: string) => void}
 */
export function wrapPrint(print, columns) {
  if (columns === undefined) return print;
  let column = 0;
  let word = '';
  const flush = () => {
    if (word === '') return;
    if (column > 0 && column + word.length > columns) {
      print('\n');
      column = 0;
    }
    print(word);
    column += word.length;
    word = '';
  };
  return (text) => {
    for (const character of text) {
      if (character !== ' ' && character !== '\n') {
        word += character;
        continue;
      }
      flush();
      // A space in the last column would wrap to the next line.
      if (character === ' ' && column >= columns) continue;
      print(character);
      column = character === '\n' ? 0 : column + 1;
    }
  };
}
