import { SchemaError } from './schema-error.ts';

/**
 * Keywords that Ajv may compile for one schema, with the subschemas, names and branches that they have: `{anyOf: [a, b]}` counts three.
 * Measured on two cores of a server, busy with other work, in a process that has compiled little yet: 60 to 250 us of CPU for each, the
 * more for those whose members V8 has to compile as well; 400 properties that are texts, or 200 with an `anyOf` of two, take some 100 ms.
 */
const MAX_COMPILED_KEYWORDS = 800;
/** Instructions of a pattern's program that take as long to make as one keyword. */
const INSTRUCTIONS_PER_KEYWORD = 4;
/** Identifiers that are parsed or resolved, some 10 us each, in the time of one keyword. */
const RESOLUTIONS_PER_KEYWORD = 16;

/** What is left of what compiling one schema may take. Counted while Ajv compiles, so whatever a schema makes Ajv do twice counts twice. */
export class CompileBudget {
  #left = MAX_COMPILED_KEYWORDS;

  /** @throws SchemaError */
  take(keywords: number): void {
    this.#left -= keywords;
    if (this.#left < 0) throw new SchemaError([], `must not have more than ${MAX_COMPILED_KEYWORDS} keywords, with what they list`);
  }

  /**
   * @param size instructions of the pattern's program
   * @throws SchemaError
   */
  spendPattern(size: number): void {
    this.take(Math.ceil(size / INSTRUCTIONS_PER_KEYWORD));
  }

  /** @throws SchemaError */
  spendResolution(): void {
    this.take(1 / RESOLUTIONS_PER_KEYWORD);
  }
}
