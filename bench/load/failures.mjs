/** Failures of a load that are recorded with their message: mostly they are the same. */
const RECORDED = 3;
const MAX_CHARACTERS = 300;

/** Failures of a load: their count, and the messages of the first few. */
export class Failures {
  count = 0;
  /** @type {string[]} */
  messages = [];

  /** @param {unknown} what */
  add(what) {
    this.count += 1;
    if (this.messages.length < RECORDED) this.messages.push((what instanceof Error ? what.message : String(what)).slice(0, MAX_CHARACTERS));
  }
}
