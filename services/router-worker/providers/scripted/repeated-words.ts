/** A text's words, repeated up to a length. Lazy: all of them would take too long for one tick. */
export class RepeatedWords {
  /** Each with its leading space. */
  readonly once: readonly string[];
  /** In all repetitions. */
  readonly length: number;

  /** @param length 0 when `once` is empty */
  constructor(once: readonly string[], length: number) {
    this.once = once;
    this.length = length;
  }

  slice(from: number, to: number): string[] {
    const words: string[] = [];
    for (let index = Math.max(from, 0); index < Math.min(to, this.length); index += 1) {
      const word = this.once[index % this.once.length] ?? '';
      words.push(index > 0 && index % this.once.length === 0 ? ` ${word}` : word);
    }
    return words;
  }

  first(count: number): RepeatedWords {
    return new RepeatedWords(this.once, Math.min(count, this.length));
  }
}
