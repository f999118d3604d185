import type { Ajv, Format } from 'ajv';
import addFormats from 'ajv-formats';
import { isUrl } from './is-url.ts';
import type { StepBudget } from './step-budget.ts';

/** All formats of `ajv-formats`. Any other is an annotation. */
export const FORMAT_NAMES = [
  'date',
  'time',
  'date-time',
  'iso-time',
  'iso-date-time',
  'duration',
  'uri',
  'uri-reference',
  'uri-template',
  'url',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'regex',
  'uuid',
  'json-pointer',
  'json-pointer-uri-fragment',
  'relative-json-pointer',
  'byte',
  'int32',
  'int64',
  'float',
  'double',
  'password',
  'binary',
] as const;

/** Limit of a `regex` text: V8 compiles it and caches the result. No hand-written expression is longer. */
const MAX_REGEX_CHARS = 4_096;

/**
 * Adds the formats of `ajv-formats`, and `formatMinimum` and the like, at one step per character. All are linear; the quadratic `url` is
 * replaced.
 */
export function addBoundedFormats(ajv: Ajv, steps: StepBudget): void {
  addFormats.default(ajv, { formats: [], keywords: true });
  for (const name of FORMAT_NAMES) ajv.addFormat(name, bounded(name, addFormats.default.get(name), steps));
}

function bounded(name: string, format: Format, steps: StepBudget): Format {
  if (typeof format !== 'object' || format instanceof RegExp) {
    const check = checkOf(name, format);
    return check === null ? true : { validate: counted(check, steps) };
  }
  if (format.async === true || format.type === 'number') return format;
  const check = checkOf(name, format.validate);
  if (check === null) return true;
  const compare: unknown = format.compare;
  if (typeof compare !== 'function') return { validate: counted(check, steps) };
  const countedCompare = (left: string, right: string) => {
    steps.take(left.length + right.length);
    return Number(Reflect.apply(compare, undefined, [left, right]));
  };
  return { validate: counted(check, steps), compare: countedCompare };
}

type Check = (text: string) => boolean;

/** Null: any text is valid. */
function checkOf(name: string, format: unknown): Check | null {
  if (name === 'url') return isUrl;
  if (format instanceof RegExp) return (text) => format.test(text);
  if (typeof format !== 'function') return null;
  const check: Check = (text) => Reflect.apply(format, undefined, [text]) === true;
  return name === 'regex' ? (text) => text.length <= MAX_REGEX_CHARS && check(text) : check;
}

function counted(check: Check, steps: StepBudget): Check {
  return (text) => {
    steps.take(1 + text.length);
    return check(text);
  };
}
