import type { ErrorObject } from 'ajv';

/** Where and how a value breaks a JSON Schema. */
export interface Violation {
  /** JSON Pointer of the value; of the missing property when one is missing. */
  path: string;
  schemaPath: string;
  keyword: string;
  /** What is wanted there: "must be string". It quotes nothing of the value but names of properties. */
  message: string;
}

/** A violation's path names properties of the value, which may be of any length. */
const MAX_PATH_CHARS = 1_024;

/**
 * Of the errors of a value the one that a person means by "the first": that of a choice comes after those of its options, which say
 * little by themselves, while that of a condition comes after what it asked for.
 */
export function firstViolation(errors: readonly ErrorObject[] | null | undefined): Violation | null {
  const last = errors?.findLast(({ keyword }) => keyword !== 'if') ?? errors?.[0];
  if (last === undefined) return null;
  const { instancePath, schemaPath, keyword, message } = last;
  return { path: cut(`${instancePath}${extraSegmentOf(last)}`), schemaPath, keyword, message: message ?? `must satisfy ${keyword}` };
}

/** The property that is missing or one too many, which Ajv names beside the path of its object. */
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

/** The JSON Pointer of a path, cut. */
export function pointerTo(segments: readonly string[]): string {
  return cut(segments.map((segment) => `/${segment.replaceAll('~', '~0').replaceAll('/', '~1')}`).join(''));
}
