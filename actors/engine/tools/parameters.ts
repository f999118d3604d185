import { z } from 'zod';
import { cleanText } from '#shared/clean-text.ts';
import type { Violation } from '#shared/schema/violation.ts';
import type { ParameterProblem } from './infer-answer.ts';

/** Of a text of a schema that a customer may be asked with. */
const MAX_TEXT_CHARS = 1_000;
const MAX_VALUES = 20;
/** Of one example or choice, as JSON. */
const MAX_VALUE_CHARS = 200;
/** Beside the standard keywords of a parameter's schema. */
const ANNOTATION = 'x-switchyard';

const text = z.string().nullable().default(null).catch(null);
const list = z.array(z.unknown()).default([]).catch([]);
const parameterSchema = z.looseObject({
  description: text,
  examples: list,
  enum: list,
  [ANNOTATION]: z
    .looseObject({ precedence: z.number().default(0).catch(0), hidden: z.boolean().default(false).catch(false), significance: text })
    .default({ precedence: 0, hidden: false, significance: null })
    .catch({ precedence: 0, hidden: false, significance: null }),
});
const argumentsSchema = z.looseObject({
  properties: z.record(z.string(), z.unknown()).default({}).catch({}),
  required: z.array(z.unknown()).default([]).catch([]),
});

/**
 * Which parameters keep a call from being made.
 * @param violation of the whole arguments, by their schema
 * @returns null: what is wrong belongs to no parameter, such as one that the schema does not know
 */
export function problemsOf(inputSchema: Record<string, unknown>, args: Record<string, unknown>, violation: Violation): ParameterProblem[] | null {
  const missing = missingOf(inputSchema, args);
  if (missing.length > 0) return missing.map((parameter) => problemOf(inputSchema, parameter, 'missing'));
  const [, parameter] = violation.path.split('/');
  if (parameter === undefined || violation.keyword === 'additionalProperties') return null;
  const name = parameter.replaceAll('~1', '/').replaceAll('~0', '~');
  return knows(inputSchema, name) ? [problemOf(inputSchema, name, 'invalid')] : null;
}

/** Required parameters without a value. Models write null or an empty text for what they do not know. */
function missingOf(inputSchema: Record<string, unknown>, args: Record<string, unknown>): string[] {
  const { required } = argumentsSchema.parse(inputSchema);
  const isMissing = (name: string) => !Object.hasOwn(args, name) || args[name] === null || args[name] === '';
  return required.filter((name) => typeof name === 'string').filter(isMissing);
}

export function knows(inputSchema: Record<string, unknown>, parameter: string): boolean {
  return Object.hasOwn(argumentsSchema.parse(inputSchema).properties, parameter);
}

/** The arguments without parameters that hold no value and are not required: null and empty texts are models' way to leave them out. */
export function withoutBlanks(inputSchema: Record<string, unknown>, args: Record<string, unknown>): Record<string, unknown> {
  const required = new Set(argumentsSchema.parse(inputSchema).required);
  return Object.fromEntries(Object.entries(args).filter(([name, value]) => required.has(name) || (value !== null && value !== '')));
}

export function problemOf(inputSchema: Record<string, unknown>, parameter: string, problem: ParameterProblem['problem']): ParameterProblem {
  const {
    description,
    examples,
    enum: choices,
    [ANNOTATION]: own,
  } = parameterSchema.catch(parameterSchema.parse({})).parse(argumentsSchema.parse(inputSchema).properties[parameter]);
  const { precedence, hidden, significance } = own;
  return {
    parameter,
    problem,
    description: shown(description),
    significance: shown(significance),
    examples: few(examples),
    choices: few(choices),
    precedence,
    hidden,
  };
}

function shown(given: string | null): string | null {
  return given === null ? null : cleanText(given.slice(0, MAX_TEXT_CHARS));
}

function few(values: readonly unknown[]): unknown[] {
  return values.slice(0, MAX_VALUES).filter((value) => JSON.stringify(value).length <= MAX_VALUE_CHARS);
}
