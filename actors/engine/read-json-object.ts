import { nestingViolation } from '#shared/json-schema.ts';
import type { Violation } from '#shared/schema/violation.ts';

/** `text`, to be staged, is the JSON of an object in both cases. */
export type JsonObject = { value: Record<string, unknown>; text: string } | { violation: Violation; text: '{}' };

export const NO_JSON: Violation = { path: '', schemaPath: '#', keyword: 'type', message: 'must be JSON' };

/** A call's arguments, as a model writes them. Some models send empty arguments to functions without parameters. */
export function readJsonObject(text: string, maxChars: number): JsonObject {
  const not = (fault: Partial<Violation>): JsonObject => ({ violation: { ...NO_JSON, ...fault }, text: '{}' });
  if (text.length > maxChars) return not({ keyword: 'maxLength', message: `must not be longer than ${maxChars} characters` });
  if (text.trim() === '') return { value: {}, text: '{}' };
  const value = parse(text);
  if (value === undefined) return not({});
  if (!isObject(value)) return not({ message: 'must be an object' });
  const violation = nestingViolation(value);
  return violation === null ? { value, text } : not(violation);
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
