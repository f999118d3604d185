export interface Listener<Message> {
  pattern: string;
  handler: (subject: string, message: Message) => void;
  stopped: boolean;
}

const NONE: readonly never[] = [];

/**
 * Finds a subject's subscribers in two look-ups: by subject, and by prefix up to the last token, where nearly every wildcard is (`tok.<origin>.*`, `ctl.*`).
 * Other patterns are tested one by one.
 */
export class SubjectIndex<Message> {
  // Arrays are replaced, never changed: a result of `match` stays as it was at the publish.
  readonly #bySubject = new Map<string, readonly Listener<Message>[]>();
  readonly #byPrefix = new Map<string, readonly Listener<Message>[]>();
  readonly #byPattern = new Map<string, readonly Listener<Message>[]>();

  add(listener: Listener<Message>): void {
    const { map, key } = this.#slotOf(listener.pattern);
    map.set(key, [...(map.get(key) ?? NONE), listener]);
  }

  remove(listener: Listener<Message>): void {
    const { map, key } = this.#slotOf(listener.pattern);
    const left = (map.get(key) ?? NONE).filter((other) => other !== listener);
    if (left.length > 0) map.set(key, left);
    else map.delete(key);
  }

  match(subject: string): readonly Listener<Message>[] {
    const literal = this.#bySubject.get(subject) ?? NONE;
    const prefixed = this.#byPrefix.get(subject.slice(0, subject.lastIndexOf('.') + 1)) ?? NONE;
    if (this.#byPattern.size === 0) {
      if (literal.length === 0) return prefixed;
      if (prefixed.length === 0) return literal;
    }
    const tested = [...this.#byPattern].filter(([pattern]) => matches(pattern, subject)).flatMap(([, listeners]) => listeners);
    return [...literal, ...prefixed, ...tested];
  }

  #slotOf(pattern: string): { map: Map<string, readonly Listener<Message>[]>; key: string } {
    const star = pattern.indexOf('*');
    if (star === -1) return { map: this.#bySubject, key: pattern };
    if (star === pattern.length - 1 && (star === 0 || pattern[star - 1] === '.')) return { map: this.#byPrefix, key: pattern.slice(0, star) };
    return { map: this.#byPattern, key: pattern };
  }
}

function matches(pattern: string, subject: string): boolean {
  const patternTokens = pattern.split('.');
  const subjectTokens = subject.split('.');
  return patternTokens.length === subjectTokens.length && patternTokens.every((token, index) => token === '*' || token === subjectTokens[index]);
}
