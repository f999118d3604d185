/**
 * Steps that one check of a value may take. A step is at most 50 ns: an item, a name, a part of a look-up, of a branch or of a character.
 * So a check ends after at most 100 ms of CPU whatever schema and value are; of a hundred kinds of schemas at this limit the dearest took
 * 82 ms, most of them 10 to 60 ms. Counted, not timed, so that the same value gets the same verdict in each process.
 */
export const MAX_STEPS = 2_000_000;

/** Of listing an object's names, for each name. */
const STEPS_PER_NAME = 4;
/** V8 keeps an object with more names in a hash table and sorts them each time that they are listed, which takes 2 us for each. */
const MAX_UNSORTED_NAMES = 1_000;
const STEPS_PER_SORTED_NAME = 32;
/** Characters of a name that cost as much as one step where the name is copied into paths. */
const NAME_CHARS_PER_STEP = 64;

/** Thrown where a check has used its steps up. */
export class StepsExceeded extends Error {}

/** What is left of one check's steps. Checks are synchronous, so one budget serves all checks of a schema. */
export class StepBudget {
  #left = MAX_STEPS;

  reset(): void {
    this.#left = MAX_STEPS;
  }

  /** @throws StepsExceeded */
  take(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new StepsExceeded();
  }

  /**
   * For a loop over an object's names.
   *
   * @param perName steps for each name, besides those of listing it
   * @param copies how often a name may be copied into the path of an error
   * @throws StepsExceeded
   */
  spendNames(value: object, perName: number, copies: number): void {
    let names = 0;
    let chars = 0;
    for (const name in value) {
      names += 1;
      chars += name.length;
    }
    const listing = names > MAX_UNSORTED_NAMES ? STEPS_PER_SORTED_NAME : STEPS_PER_NAME;
    this.take(names * (listing + perName) + Math.floor((chars * copies) / NAME_CHARS_PER_STEP));
  }
}
