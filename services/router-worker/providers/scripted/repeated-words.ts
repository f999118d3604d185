/**
 * The words of a text that is said one or more times, cut at a length. A word is made when it is asked for: an answer may have more words
 * than can be made in one turn of the event loop.
 */
export class RepeatedWords {
  /** Of the text said once, each with the space before it. */
  readonly once: readonly string[];
  /** How many there are in all. */
  readonly length: number;

  /** @param length no more than 0 where `once` is empty */
  constructor(once: readonly string[], length: number) {
    this.once = once;
    this.length = length;
  }

  /** The words from one place to another, the latter excluded. */
  slice(from: number, to: number): string[] {
    const words: string[] = [];
    for (let index = Math.max(from, 0); index < Math.min(to, this.length); index += 1) {
      const word = this.once[index % this.once.length] ?? '';
      words.push(index > 0 && index % this.once.length === 0 ? ` ${word}` : word);
    }
    return words;
  }

  /** The same, cut at so many words. */
  first(count: number): RepeatedWords {
    return new RepeatedWords(this.once, Math.min(count, this.length));
  }
}
