/** How many of its failures a load tells in full: they are mostly one and the same. */
const TOLD = 3;
const MAX_CHARACTERS = 300;

/** What went wrong under a load: how often, and in words the first few times. */
export class Failures {
  count = 0;
  /** @type {string[]} */
  told = [];

  /** @param {unknown} what */
  add(what) {
    this.count += 1;
    if (this.told.length < TOLD) this.told.push((what instanceof Error ? what.message : String(what)).slice(0, MAX_CHARACTERS));
  }
}
