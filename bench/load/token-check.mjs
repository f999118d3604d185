/**
 * @typedef {object} TokenCounts
 * @property {number} delivered each number once, wherever in the stream it came
 * @property {number} lost
 * @property {number} doubled
 * @property {number} reordered came after one that is later than it
 * @property {number} foreign of another stream
 */

const CONTENT = '"content":"';
const TOKEN = /(\d+)\.(\d+) /g;
/** Far more than the longest event of a stream. */
const MAX_UNREAD_CHARACTERS = 1_024 * 1_024;

/**
 * Parses a stream's events incrementally and checks the number of every token. Several tokens may share an event, and one event may span
 * several pieces; a token is never split between two events.
 */
export class TokenCheck {
  /** @type {number} */
  #id;
  /** @type {number} */
  #tokens;
  #next = 0;
  #unread = '';
  /** Numbers that were skipped. @type {Set<number>} */
  #missing = new Set();
  #counts = { delivered: 0, doubled: 0, reordered: 0, foreign: 0 };
  /** Whether the stream had its end mark. */
  isDone = false;

  /** @param {{ id: number, tokens: number }} of the id of the stream, and the tokens it must have */
  constructor({ id, tokens }) {
    this.#id = id;
    this.#tokens = tokens;
  }

  /** @param {string} text the next piece of the stream @returns {number} its tokens, whatever their numbers */
  push(text) {
    const all = this.#unread + text;
    const end = all.lastIndexOf('\n') + 1;
    this.#unread = all.slice(end);
    if (this.#unread.length > MAX_UNREAD_CHARACTERS) throw new Error('an event is too long to be one of a stream of tokens');
    let found = 0;
    for (let at = 0; at < end; ) {
      const lineEnd = all.indexOf('\n', at);
      found += this.#readLine(all, at, lineEnd);
      at = lineEnd + 1;
    }
    return found;
  }

  /** @returns {TokenCounts} with missing tokens as lost */
  counts() {
    return { ...this.#counts, lost: Math.max(0, this.#tokens - this.#counts.delivered) };
  }

  /** @param {string} all @param {number} from @param {number} to */
  #readLine(all, from, to) {
    if (!all.startsWith('data: ', from)) return 0;
    if (all.startsWith('[DONE]', from + 6)) this.isDone = true;
    const content = all.indexOf(CONTENT, from);
    if (content < 0 || content > to) return 0;
    const begin = content + CONTENT.length;
    let found = 0;
    for (const [, id, number] of all.slice(begin, all.indexOf('"', begin)).matchAll(TOKEN)) {
      this.#note(Number(id), Number(number));
      found += 1;
    }
    return found;
  }

  /** @param {number} id @param {number} number */
  #note(id, number) {
    if (id !== this.#id || number >= this.#tokens) this.#counts.foreign += 1;
    else if (number >= this.#next) {
      for (let passed = this.#next; passed < number; passed += 1) this.#missing.add(passed);
      this.#next = number + 1;
      this.#counts.delivered += 1;
    } else if (this.#missing.delete(number)) {
      this.#counts.reordered += 1;
      this.#counts.delivered += 1;
    } else this.#counts.doubled += 1;
  }
}
