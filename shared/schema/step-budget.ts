/**
 * Steps of one check of a value. A step is at most 50 ns: an item, a name, part of a look-up, a branch or a character. So a check takes at
 * most 100 ms of CPU for any schema and value; of a hundred kinds of schemas at this limit the slowest took 82 ms, most 10–60 ms. Counted,
 * not timed, so that all processes reach the same verdict.
 */
export const MAX_STEPS = 2_000_000;

/** Cost of listing an object's names, per name. */
const STEPS_PER_NAME = 4;
/** V8 stores an object with more names as a hash table and sorts them at each listing: 2 us per name. */
const MAX_UNSORTED_NAMES = 1_000;
const STEPS_PER_SORTED_NAME = 32;
/** Characters of a name per step where it is copied into paths. */
const NAME_CHARS_PER_STEP = 64;

export class StepsExceeded extends Error {}

/** The remaining steps of one check. Checks are synchronous, so one budget serves all checks of a schema. */
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
   * Takes the steps of a loop over an object's names.
   *
   * @param perName steps per name, besides listing it
   * @param copies how often a name may be copied into an error's path
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
