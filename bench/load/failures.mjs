/** Kinds of failures that are shown: those that occurred most. */
const SHOWN = 5;
/** Kinds that are counted by themselves; a load has few. */
const MAX_KINDS = 100;
const MAX_CHARACTERS = 300;
/** Ids, lengths and times, by which failures of one kind differ. A status has three digits. */
const PARTICULARS = /[\w-]{16,}|\d{4,}/g;

/** Failures of a load: their count, and for each kind its count and its first message. */
export class Failures {
  count = 0;
  /** @type {Map<string, { message: string, count: number }>} */
  #kinds = new Map();

  /** @param {unknown} what */
  add(what) {
    this.count += 1;
    const message = (what instanceof Error ? what.message : String(what)).slice(0, MAX_CHARACTERS);
    const name = message.replace(PARTICULARS, '#');
    const kind = this.#kinds.get(name);
    if (kind !== undefined) kind.count += 1;
    else if (this.#kinds.size < MAX_KINDS) this.#kinds.set(name, { message, count: 1 });
  }

  /** The most frequent first. @returns {string[]} */
  get messages() {
    const kinds = [...this.#kinds.values()].sort((one, other) => other.count - one.count);
    return kinds.slice(0, SHOWN).map(({ message, count }) => `${count} × ${message}`);
  }
}
