const WHITESPACE = ' \t\n\r';

/**
 * How far the arguments of a call are, from their pieces: whether they are an object that is closed. Each character is looked at once and none is kept, since
 * arguments can be megabytes in thousands of pieces. Their syntax is not checked beyond strings and brackets.
 */
export class ArgumentsScanner {
  #first = '';
  /** The last character that is no whitespace. */
  #last = '';
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  add(text: string): void {
    for (const character of text) this.#addCharacter(character);
  }

  /** Nothing has come but whitespace. */
  get isEmpty(): boolean {
    return this.#last === '';
  }

  /** A closed object, or several: nothing that is JSON continues it. */
  get isComplete(): boolean {
    return this.#first === '{' && this.#depth === 0 && this.#last === '}';
  }

  /** Whether a piece can continue these: not where it opens an object at a place that can't have one. */
  canContinueWith(text: string): boolean {
    return this.isEmpty || this.#isInString || ':,['.includes(this.#last) || !opensObject(text);
  }

  #addCharacter(character: string): void {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (character === '\\') this.#isEscaped = true;
      else if (character === '"') this.#isInString = false;
    } else if (WHITESPACE.includes(character)) return;
    else if (character === '"') this.#isInString = true;
    else if (character === '{' || character === '[') this.#depth += 1;
    else if (character === '}' || character === ']') this.#depth -= 1;
    this.#first ||= character;
    this.#last = character;
  }
}

function opensObject(text: string): boolean {
  return /^[ \t\n\r]*\{/.test(text);
}
