import { SchemaError } from './schema-error.ts';

/** A schema's JSON. What is compiled has a limit of its own; this one is for descriptions and examples, which are walked through. */
const MAX_SCHEMA_CHARS = 131_072;
/** Names on the way to each object of a schema, together. Ajv makes a text of each way: of one name of 60,000 characters around 6,000 objects, half a gigabyte. */
const MAX_POINTER_CHARS = 1_048_576;
/** Objects of a schema, without values to compare with. Checking that it is a schema takes some 10 us for each, before anything is compiled. */
const MAX_OBJECTS = 2_000;
/** Identifiers and references are resolved against one another: each against one of 60,000 characters takes a second for a thousand. */
const MAX_REFERENCE_CHARS = 1_024;
const REFERENCES = new Set(['$id', '$ref', '$anchor', '$dynamicRef', '$dynamicAnchor', '$recursiveRef', 'id']);
/** Lists of values, through which nothing that compiles goes. */
const VALUES = new Set(['enum', 'examples']);

/**
 * Refuses a schema that takes long to walk through, before anything does.
 *
 * @param sizeChars of its JSON
 * @throws SchemaError
 */
export function refuseLargeText(schema: Record<string, unknown>, sizeChars: number): void {
  if (sizeChars > MAX_SCHEMA_CHARS) throw new SchemaError([], `must not be larger than ${MAX_SCHEMA_CHARS} characters`);
  const walk = new Walk();
  walk.visit(schema, 0, []);
}

class Walk {
  #objects = 0;
  #pointerChars = 0;

  /** Recursion is as deep as the schema is nested, which is bounded before. */
  visit(value: object, wayChars: number, path: readonly string[]): void {
    this.#objects += 1;
    this.#pointerChars += wayChars;
    if (this.#objects > MAX_OBJECTS) throw new SchemaError([], `must not have more than ${MAX_OBJECTS} objects`);
    if (this.#pointerChars > MAX_POINTER_CHARS) throw new SchemaError([], 'must not have names so long around so much');
    for (const [key, inner] of Object.entries(value)) {
      const isLong = typeof inner === 'string' && inner.length > MAX_REFERENCE_CHARS;
      if (isLong && REFERENCES.has(key)) throw new SchemaError([...path, key], `must not be longer than ${MAX_REFERENCE_CHARS} characters`);
      // Where a schema is wanted no array may stand, so none is hidden here.
      const isValues = VALUES.has(key) && Array.isArray(inner);
      if (typeof inner === 'object' && inner !== null && !isValues) this.visit(inner, wayChars + key.length + 1, [...path, key]);
    }
  }
}
