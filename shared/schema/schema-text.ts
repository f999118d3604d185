import { SchemaError } from './schema-error.ts';

/** Characters of a schema's JSON. Unlike CompileBudget it bounds descriptions and examples too, which are traversed. */
const MAX_SCHEMA_CHARS = 131_072;
/**
 * Total length of the pointers to all objects of a schema. Ajv makes a string of each: a name of 60,000 characters around 6,000 objects
 * takes half a gigabyte.
 */
const MAX_POINTER_CHARS = 1_048_576;
/** Objects of a schema, without `enum` and `examples`. The meta-schema check takes some 10 us each, before anything is compiled. */
const MAX_OBJECTS = 2_000;
/** Identifiers and references are resolved against one another: a thousand against one of 60,000 characters take a second. */
const MAX_REFERENCE_CHARS = 1_024;
const REFERENCES = new Set(['$id', '$ref', '$anchor', '$dynamicRef', '$dynamicAnchor', '$recursiveRef', 'id']);
/** Lists of values, which compiling does not traverse. */
const VALUES = new Set(['enum', 'examples']);

/**
 * Refuses a schema that is too large to traverse, before any other check.
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

  /** The caller has bounded the schema's depth, and so the recursion. */
  visit(value: object, chars: number, path: readonly string[]): void {
    this.#objects += 1;
    this.#pointerChars += chars;
    if (this.#objects > MAX_OBJECTS) throw new SchemaError([], `must not have more than ${MAX_OBJECTS} objects`);
    if (this.#pointerChars > MAX_POINTER_CHARS) throw new SchemaError([], 'must not have such long names around so many objects');
    for (const [key, inner] of Object.entries(value)) {
      const isLong = typeof inner === 'string' && inner.length > MAX_REFERENCE_CHARS;
      if (isLong && REFERENCES.has(key)) throw new SchemaError([...path, key], `must not be longer than ${MAX_REFERENCE_CHARS} characters`);
      // No schema is skipped: a schema is never an array.
      const isValues = VALUES.has(key) && Array.isArray(inner);
      if (typeof inner === 'object' && inner !== null && !isValues) this.visit(inner, chars + key.length + 1, [...path, key]);
    }
  }
}
