import type { Options, ValidateFunction } from 'ajv';
import uri from 'ajv/dist/runtime/uri.js';
import { addBoundedFormats } from './bounded-formats.ts';
import { CompileBudget } from './compile-budget.ts';
import { commonOptions, type Dialect, dialectOf } from './dialect.ts';
import { type LinearPattern, linearPattern } from './linear-pattern.ts';
import { type Meters, meterKeywords } from './meter-keywords.ts';
import { ReferenceGraph } from './reference-graph.ts';
import { SchemaError } from './schema-error.ts';
import { refuseLargeText } from './schema-text.ts';
import { MAX_STEPS, StepBudget, StepsExceeded } from './step-budget.ts';
import { firstViolation, type Violation } from './violation.ts';

type Check = (value: unknown) => Violation | null;

/**
 * Ajv inlines referenced schemas without references of their own up to this many keywords. Unbounded, a thousand references to a hundred
 * keywords would compile to a hundred thousand.
 */
const MAX_INLINED_KEYWORDS = 16;

/** One value of each type: V8 compiles a function at its first call. */
const SAMPLES: readonly unknown[] = [null, true, 0, '', [], {}];

/**
 * Compiles a JSON Schema of bounded depth into a check of values, within limits of time at compiling and at checking.
 *
 * @param sizeChars of its JSON
 * @throws SchemaError
 */
export function compile(schema: Record<string, unknown>, sizeChars: number): Check {
  refuseLargeText(schema, sizeChars);
  // Ajv would return an asynchronous check.
  if (Object.hasOwn(schema, '$async')) throw new SchemaError(['$async'], 'must not be there: a value is checked at once');
  const dialect = dialectOf(schema);
  const problem = dialect.problemOf(schema);
  if (problem !== null) throw new SchemaError(problem.path.map(String), problem.expected);
  const meters: Meters = { compile: new CompileBudget(), steps: new StepBudget(), references: new ReferenceGraph(schema) };
  const validate = compileMetered(schema, dialect, meters);
  meters.references.check();
  runOnce([validate, ...meters.references.functions()], meters.steps);
  return guarded(validate, meters.steps);
}

function compileMetered(schema: Record<string, unknown>, dialect: Dialect, meters: Meters): ValidateFunction {
  try {
    // One instance per schema: an instance caches all that it compiled, and two schemas may have the same $id.
    const ajv = dialect.create({
      ...commonOptions,
      meta: false,
      validateSchema: false,
      inlineRefs: MAX_INLINED_KEYWORDS,
      uriResolver: countedResolver(meters.compile),
      // Ajv's optimizer is quadratic in the number of properties: 12 s for 2,000.
      code: { optimize: false, regExp: patternEngine(schema, meters) },
    });
    addBoundedFormats(ajv, meters.steps);
    meterKeywords(ajv, meters);
    return ajv.compile(schema);
  } catch (cause) {
    if (cause instanceof SchemaError) throw cause;
    if (cause instanceof RangeError) throw stackOverflow(cause);
    throw new SchemaError(
      [],
      `must be a JSON Schema that refers to nothing outside itself (${cause instanceof Error ? cause.message : 'unknown fault'})`,
      cause,
    );
  }
}

function stackOverflow(cause: unknown): SchemaError {
  return new SchemaError([], 'must not be nested so deep, or have references that lead only to themselves, that compiling it overflows the stack', cause);
}

/** Ajv resolves chains of references anew from each start: 400 references into a chain of 400 take a second. */
function countedResolver(budget: CompileBudget): NonNullable<Options['uriResolver']> {
  return {
    parse(text) {
      budget.spendResolution();
      return uri.default.parse(text);
    },
    resolve(base, path) {
      budget.spendResolution();
      return uri.default.resolve(base, path);
    },
    serialize: (component) => uri.default.serialize(component),
  };
}

/** Provokes errors of the first call: V8 may overflow the stack when it compiles Ajv's code. */
function runOnce(functions: Iterable<(value: unknown) => unknown>, steps: StepBudget): void {
  try {
    for (const validate of functions) {
      for (const sample of SAMPLES) {
        steps.reset();
        validate(sample);
      }
    }
  } catch (cause) {
    if (cause instanceof RangeError) throw stackOverflow(cause);
    throw new SchemaError([], 'must be a JSON Schema that values can be checked against', cause);
  }
}

/** A check that never throws and ends within its step budget. */
function guarded(validate: ValidateFunction, steps: StepBudget): Check {
  return (value) => {
    steps.reset();
    try {
      return validate(value) === true ? null : firstViolation(validate.errors);
    } catch (error) {
      if (error instanceof StepsExceeded) return wholeValue('maxSteps', `must not take more than ${MAX_STEPS} steps to check`);
      if (error instanceof RangeError) return wholeValue('maxSteps', 'must not overflow the stack when it is checked');
      // Ajv 8.20 generates code that throws for some combinations of keywords, `if` with `contains` among them.
      if (error instanceof TypeError) return wholeValue('unsupported', 'can not be checked: the schema combines keywords in a way that is not supported');
      throw error;
    } finally {
      // Errors retain the value.
      validate.errors = null;
    }
  };
}

function wholeValue(keyword: string, message: string): Violation {
  return { path: '', schemaPath: '#', keyword, message };
}

/** Ajv calls it with each pattern while compiling, for some keywords more than once. */
function patternEngine(schema: Record<string, unknown>, { compile: budget, steps }: Meters) {
  const known = new Map<string, LinearPattern>();
  const engine = (pattern: string, flags: string) => {
    const linear = known.get(pattern) ?? linearPattern(pattern, flags);
    if ('problem' in linear) throw new SchemaError(pathToPattern(schema, pattern) ?? [], linear.problem);
    if (!known.has(pattern)) budget.spendPattern(linear.size);
    known.set(pattern, linear);
    const test = (text: string) => {
      steps.take(linear.stepsFor(text.length));
      return linear.test(text);
    };
    // Ajv caches engines by their text: with the default text all patterns would share the first one.
    return { test, toString: () => pattern };
  };
  // Ajv requires it for standalone code, which is not generated here.
  return Object.assign(engine, { code: 'new RegExp' });
}

/** Path of the pattern's first occurrence. */
function pathToPattern(schema: unknown, pattern: string): string[] | null {
  if (typeof schema !== 'object' || schema === null) return null;
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'pattern' && value === pattern) return [key];
    if (key === 'patternProperties' && typeof value === 'object' && value !== null && Object.hasOwn(value, pattern)) return [key, pattern];
    const below = pathToPattern(value, pattern);
    if (below !== null) return [key, ...below];
  }
  return null;
}
