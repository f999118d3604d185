/**
 * A printer that breaks lines between words, as text comes piece by piece: a terminal alone would break them within words. A word is
 * printed once a blank or the end of a line is behind it.
 *
 * @param {(text: string) => void} print
 * @param {number | undefined} columns of the terminal; undefined: the output is none, and its lines are left as they come
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
      // A blank in the last column would begin the next line.
      if (character === ' ' && column >= columns) continue;
      print(character);
      column = character === '\n' ? 0 : column + 1;
    }
  };
}
