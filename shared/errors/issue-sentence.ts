import type { z } from 'zod';
import { shortened } from './shortened.ts';

type RawIssue = z.core.$ZodRawIssue;

const MAX_QUOTED_CHARACTERS = 200;

/**
 * An error map of zod, for `safeParse(value, { error: issueSentence })`: the requirement as a predicate of the field, `must be a string`
 * or `is missing; it must be …`. A message in the schema itself takes precedence. Never quotes the value, which may be a misplaced secret
 * or a customer's text.
 */
export function issueSentence(issue: RawIssue): string {
  const expected = expectedBy(issue);
  return isMissing(issue) ? `is missing; it ${expected}` : expected;
}

/** The same for parameters of a query: all are texts, whatever they stand for, and a list is one that is given more than once. */
export function parameterSentence(issue: RawIssue): string {
  if (issue.code === 'invalid_type' && issue.expected === 'string') {
    if (issue.input === undefined) return 'is missing';
    if (Array.isArray(issue.input)) return 'must be given once';
  }
  return issueSentence(issue);
}

/** A missing discriminator is reported with the whole object as input. */
function isMissing(issue: RawIssue): boolean {
  const { code, input } = issue;
  if (code !== 'invalid_union' || typeof issue.discriminator !== 'string') return input === undefined;
  return typeof input === 'object' && input !== null && !(issue.discriminator in input);
}

function expectedBy(issue: RawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return expectedType(issue.expected, issue.input);
    case 'invalid_value':
      return `must be ${oneOf(issue.values)}`;
    case 'invalid_union':
      return expectedByUnion(issue);
    case 'too_small':
      return sizeSentence(issue.origin, issue.minimum, issue.exact === true ? 'exactly' : issue.inclusive === false ? 'more than' : 'at least');
    case 'too_big':
      return sizeSentence(issue.origin, issue.maximum, issue.exact === true ? 'exactly' : issue.inclusive === false ? 'less than' : 'at most');
    case 'invalid_format':
      return `must ${expectedFormat(issue)}`;
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'unrecognized_keys':
      return `has ${issue.keys.length === 1 ? 'a field that is' : 'fields that are'} not known: ${quoted(issue.keys)}`;
    case 'invalid_key':
      return `has a key that ${issue.issues[0]?.message ?? 'is not accepted'}`;
    case 'invalid_element':
      return `has an entry that ${issue.issues[0]?.message ?? 'is not accepted'}`;
    case 'custom':
      return 'is not accepted';
  }
}

/** The hint is for unquoted numbers and booleans, mostly in YAML. */
function expectedType(expected: string, input: unknown): string {
  if (expected === 'never') return 'must not be given';
  const hint = expected === 'string' && (typeof input === 'number' || typeof input === 'boolean') ? '; put it in quotes' : '';
  return `must be ${nameOfType(expected)}${hint}`;
}

/** Lists the accepted types of a union, if no alternative failed for another reason. */
function expectedByUnion(issue: Extract<RawIssue, { code: 'invalid_union' }>): string {
  if ('options' in issue && Array.isArray(issue.options) && issue.options.length > 0) return `must be ${oneOf(issue.options)}`;
  const names: string[] = [];
  for (const [first] of issue.errors) {
    if (first === undefined || first.path.length > 0) return 'has none of the accepted forms';
    if (first.code === 'invalid_type') names.push(nameOfType(first.expected));
    else if (first.code === 'invalid_value') names.push(oneOf(first.values));
    else return 'has none of the accepted forms';
  }
  const distinct = [...new Set(names)];
  return distinct.length === 0 ? 'has none of the accepted forms' : `must be ${distinct.join(' or ')}`;
}

const UNITS: Readonly<Record<string, readonly [one: string, many: string]>> = {
  string: ['character', 'characters'],
  array: ['entry', 'entries'],
  set: ['entry', 'entries'],
  map: ['entry', 'entries'],
  object: ['field', 'fields'],
  file: ['byte', 'bytes'],
};

function sizeSentence(origin: string, limit: number | bigint, relation: string): string {
  const units = UNITS[origin];
  if (units === undefined) return `must be ${relation === 'more than' ? 'greater than' : relation} ${limit}`;
  const isOne = Number(limit) === 1;
  if (isOne && relation === 'at least' && origin === 'string') return 'must not be empty';
  return `must have ${relation} ${limit} ${isOne ? units[0] : units[1]}`;
}

const FORMATS: Readonly<Record<string, string>> = {
  url: 'be a URL',
  email: 'be an e-mail address',
  uuid: 'be a UUID',
  datetime: 'be a date and time as in RFC 3339',
  date: 'be a date, YYYY-MM-DD',
  time: 'be a time, HH:MM:SS',
  ipv4: 'be an IPv4 address',
  ipv6: 'be an IPv6 address',
  base64: 'be base64',
  base64url: 'be base64url',
  json_string: 'be JSON',
};

function expectedFormat(issue: Extract<RawIssue, { code: 'invalid_format' }>): string {
  const { format, pattern } = issue;
  if (format === 'url' && typeof pattern === 'string') return `be a URL whose scheme matches ${shortened(pattern, MAX_QUOTED_CHARACTERS)}`;
  if (format === 'starts_with' && 'prefix' in issue) return `begin with ${JSON.stringify(issue.prefix)}`;
  if (format === 'ends_with' && 'suffix' in issue) return `end with ${JSON.stringify(issue.suffix)}`;
  if (format === 'includes' && 'includes' in issue) return `contain ${JSON.stringify(issue.includes)}`;
  const known = FORMATS[format];
  if (known !== undefined) return known;
  return typeof pattern === 'string' ? `match the pattern ${shortened(pattern, MAX_QUOTED_CHARACTERS)}` : `be a valid ${format}`;
}

const NAMES_OF_TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  bigint: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  tuple: 'a list',
  set: 'a list',
  object: 'an object',
  record: 'an object',
  map: 'an object',
  date: 'a date',
  null: 'null',
  undefined: 'absent',
  nonoptional: 'given',
};

function nameOfType(expected: string): string {
  return NAMES_OF_TYPES[expected] ?? `of type ${expected}`;
}

function oneOf(options: readonly unknown[]): string {
  const given = options.filter((option) => option !== undefined);
  return given.length === 1 ? quoted(given) : `one of ${quoted(given)}`;
}

function quoted(values: readonly unknown[]): string {
  return shortened(values.map((value) => (typeof value === 'bigint' ? String(value) : JSON.stringify(value))).join(', '), MAX_QUOTED_CHARACTERS);
}
