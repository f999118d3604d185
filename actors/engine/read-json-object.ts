import { inexactNumber } from '#shared/inexact-number.ts';
import { nestingViolation } from '#shared/json-schema.ts';
import type { Violation } from '#shared/schema/violation.ts';

/** `text`, to be staged, is the JSON of an object in both cases. `rounded`: the object, when its only fault is a number that cannot be kept exactly. */
export type JsonObject = { value: Record<string, unknown>; text: string } | { violation: Violation; text: '{}'; rounded?: Record<string, unknown> };

export const NO_JSON: Violation = { path: '', schemaPath: '#', keyword: 'type', message: 'must be JSON' };
const INEXACT = { keyword: 'exactNumber', message: 'must not have a number that cannot be kept exactly, as it is beyond ±2^53: send it as a string' };

/**
 * A call's arguments, or another JSON object, as a model writes it. Some models send empty arguments to functions without parameters. A number that cannot be
 * kept exactly (inexact-number.ts) is refused, since it would become another id, or null.
 */
export function readJsonObject(text: string, maxChars: number): JsonObject {
  const not = (fault: Partial<Violation>) => ({ violation: { ...NO_JSON, ...fault }, text: '{}' as const });
  if (text.length > maxChars) return not({ keyword: 'maxLength', message: `must not be longer than ${maxChars} characters` });
  if (text.trim() === '') return { value: {}, text: '{}' };
  const value = parse(text);
  if (value === undefined) return not({});
  if (!isObject(value)) return not({ message: 'must be an object' });
  const tooDeep = nestingViolation(value);
  if (tooDeep !== null) return not(tooDeep);
  const inexact = inexactNumber(text);
  return inexact === null ? { value, text } : { ...not({ path: inexact.path, ...INEXACT }), rounded: value };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
