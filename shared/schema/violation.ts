import type { ErrorObject } from 'ajv';

/** How a value violates a JSON Schema. */
export interface Violation {
  /** JSON Pointer of the value, or of the missing property. */
  path: string;
  schemaPath: string;
  keyword: string;
  /** The requirement: "must be string". Of the value it quotes property names only. */
  message: string;
}

/** Property names of the value may be of any length. */
const MAX_PATH_CHARS = 1_024;

/**
 * The most useful error: the last, as Ajv lists a choice's error after those of its branches, but not an `if`'s, which follows the errors
 * of its `then` or `else`.
 */
export function firstViolation(errors: readonly ErrorObject[] | null | undefined): Violation | null {
  const last = errors?.findLast(({ keyword }) => keyword !== 'if') ?? errors?.[0];
  if (last === undefined) return null;
  const { instancePath, schemaPath, keyword, message } = last;
  return { path: cut(`${instancePath}${extraSegmentOf(last)}`), schemaPath, keyword, message: message ?? `must satisfy ${keyword}` };
}

/** The missing or surplus property, which Ajv does not include in the object's path. */
function extraSegmentOf({ params }: ErrorObject): string {
  for (const name of ['missingProperty', 'additionalProperty', 'unevaluatedProperty', 'propertyName']) {
    const property: unknown = params[name];
    if (typeof property === 'string') return pointerTo([property]);
  }
  return '';
}

function cut(path: string): string {
  return path.length > MAX_PATH_CHARS ? `${path.slice(0, MAX_PATH_CHARS)}…` : path;
}

/** The JSON Pointer of a path, cut at MAX_PATH_CHARS. */
export function pointerTo(segments: readonly string[]): string {
  return cut(segments.map((segment) => `/${segment.replaceAll('~', '~0').replaceAll('/', '~1')}`).join(''));
}
