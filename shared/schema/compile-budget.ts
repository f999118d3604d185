import { SchemaError } from './schema-error.ts';

/**
 * Keywords that Ajv may compile for one schema, with their subschemas, names and branches: `{anyOf: [a, b]}` counts three. Measured on two
 * cores of a busy server, in a fresh process: 60–250 us of CPU each, most where V8 compiles the members too; 400 text properties, or 200
 * with an `anyOf` of two, take some 100 ms.
 */
const MAX_COMPILED_KEYWORDS = 800;
/** Pattern instructions that take as long to make as one keyword. */
const INSTRUCTIONS_PER_KEYWORD = 4;
/** Identifiers parsed or resolved (some 10 us each) in the time of one keyword. */
const RESOLUTIONS_PER_KEYWORD = 16;

/** The remaining budget for compiling one schema. Counted while Ajv compiles, so that work done twice counts twice. */
export class CompileBudget {
  #left = MAX_COMPILED_KEYWORDS;

  /** @throws SchemaError */
  take(keywords: number): void {
    this.#left -= keywords;
    if (this.#left < 0) throw new SchemaError([], `must not have more than ${MAX_COMPILED_KEYWORDS} keywords, their members included`);
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
