import { _, type Ajv, type Code, type KeywordCxt, Name } from 'ajv';
import { resolveRef, SchemaEnv } from 'ajv/dist/compile/index.js';
import { canonicalJson } from '../config/canonical-json.ts';
import type { CompileBudget } from './compile-budget.ts';
import { isMember } from './is-member.ts';
import { type ReferenceGraph, schemaOf } from './reference-graph.ts';
import type { StepBudget } from './step-budget.ts';

export interface Meters {
  /** Of one schema's compilation. */
  compile: CompileBudget;
  /** Of one check. */
  steps: StepBudget;
  references: ReferenceGraph;
}

/** Each name listed under another one compiles to a check and an error of its own: 0.4 ms. */
const UNITS_PER_LISTED_NAME = 4;
/** Canonical JSON takes 1 us per value. */
const VALUES_PER_UNIT = 100;
/** A failing branch makes an error object with the value's path: 0.5 us. */
const STEPS_PER_BRANCH = 12;
/** A property look-up takes 20 ns in objects of one shape, 200 ns where each object of a list has its own shape. */
const STEPS_PER_LOOK_UP = 8;
/** Counting code points takes 6 ns each. */
const COUNTED_CHARS_PER_STEP = 6;
/** Canonical JSON of an item, and storing it, takes up to 120 ns per character. */
const STEPS_PER_WRITTEN_CHAR = 4;
/** A reference's errors are appended by copying. */
const COPIED_ERRORS_PER_STEP = 4;

/**
 * Instruments Ajv: compiling counts keywords and records references; the generated code counts steps. The quadratic `enum`, `const` and
 * `uniqueItems` are replaced by comparisons of canonical JSON.
 *
 * Definitions are changed in place: `getKeyword` returns Ajv's own copy, one per instance.
 */
export function meterKeywords(ajv: Ajv, meters: Meters): void {
  compareByCanonicalJson(ajv, meters.steps);
  for (const keyword of Object.keys(ajv.RULES.all)) {
    const definition = ajv.getKeyword(keyword);
    if (typeof definition !== 'object' || !('code' in definition)) continue;
    const { code } = definition;
    definition.code = (cxt, ruleType) => {
      const units = unitsOf(keyword, cxt.schema);
      meters.compile.take(units);
      meters.references.addKeywords(cxt.it.schemaEnv, units);
      noteReference(cxt, keyword, meters.references);
      const steps = cxt.gen.scopeValue('obj', { ref: meters.steps });
      const taken = stepsOf(cxt, keyword, steps);
      if (taken !== null) cxt.gen.code(taken);
      code(cxt, ruleType);
    };
  }
}

/** Replaces the code of `enum`, `const` and `uniqueItems`; their order among the keywords stays. */
export function compareByCanonicalJson(ajv: Ajv, steps: StepBudget): void {
  const replace = (keyword: string, testOf: (schema: unknown) => (value: unknown) => boolean) => {
    const definition = ajv.getKeyword(keyword);
    if (typeof definition !== 'object' || !('code' in definition)) return;
    if (keyword === 'uniqueItems') definition.error = { message: 'must NOT have duplicate items' };
    definition.code = (cxt) => cxt.pass(_`${cxt.gen.scopeValue('func', { ref: testOf(cxt.schema) })}(${cxt.data})`);
  };
  replace('enum', (members) => isMember(Array.isArray(members) ? members : [], steps));
  replace('const', (member) => isMember([member], steps));
  replace('uniqueItems', (isWanted) => (items) => isWanted !== true || !Array.isArray(items) || areUnique(items, steps));
}

function areUnique(items: readonly unknown[], steps: StepBudget): boolean {
  const seen = new Set<string>();
  for (const item of items) {
    const text = canonicalJson(item);
    steps.take(STEPS_PER_WRITTEN_CHAR * text.length);
    if (seen.has(text)) return false;
    seen.add(text);
  }
  return true;
}

/** Cost of compiling a keyword. Values of `enum` and `const` are only written into a set. */
function unitsOf(keyword: string, schema: unknown): number {
  const members = membersOf(schema);
  if (keyword === 'enum' || keyword === 'const') return 1 + Math.ceil(members / VALUES_PER_UNIT);
  const listed = keyword === 'dependencies' || keyword === 'dependentRequired' ? UNITS_PER_LISTED_NAME * namesIn(schema) : 0;
  return 1 + members + listed;
}

/** Total length of the lists in a keyword's object. */
function namesIn(schema: unknown): number {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return 0;
  return Object.values(schema).reduce<number>((sum, inner) => sum + (Array.isArray(inner) ? inner.length : 0), 0);
}

/** Number of subschemas, names or values of a keyword. */
function membersOf(schema: unknown): number {
  return typeof schema === 'object' && schema !== null ? Object.keys(schema).length : 0;
}

/** Code that takes a keyword's steps; null: negligible. */
function stepsOf({ data, schema, it }: KeywordCxt, keyword: string, steps: Name): Code | null {
  const members = membersOf(schema);
  switch (keyword) {
    case '$ref':
    case '$dynamicRef':
    case '$recursiveRef':
      return _`${steps}.take(vErrors === null ? 2 : 2 + vErrors.length / ${COPIED_ERRORS_PER_STEP})`;
    case 'allOf':
    case 'anyOf':
    case 'oneOf':
      return _`${steps}.take(${STEPS_PER_BRANCH * members})`;
    case 'not':
    case 'if':
      return _`${steps}.take(${STEPS_PER_BRANCH})`;
    case 'prefixItems':
      return _`${steps}.take(${members})`;
    case 'properties':
    case 'required':
    case 'dependencies':
    case 'dependentRequired':
    case 'dependentSchemas':
      return _`${steps}.take(${STEPS_PER_LOOK_UP * (members + namesIn(schema))})`;
    case 'items':
    case 'additionalItems':
    case 'unevaluatedItems':
      return _`${steps}.take(${data}.length * ${1 + members})`;
    case 'contains':
      return _`${steps}.take(${data}.length * ${STEPS_PER_BRANCH + members})`;
    case 'patternProperties':
    case 'additionalProperties':
    case 'propertyNames':
      return _`${steps}.spendNames(${data}, ${members}, ${subschemasIn(schema)})`;
    case 'unevaluatedProperties':
      return _`${steps}.spendNames(${data}, ${members + evaluatedNames(it.props)}, ${subschemasIn(schema)})`;
    case 'minProperties':
    case 'maxProperties':
      return _`${steps}.spendNames(${data}, 0, 0)`;
    case 'minLength':
    case 'maxLength':
      return _`${steps}.take(${data}.length / ${COUNTED_CHARS_PER_STEP})`;
    default:
      return null;
  }
}

/** Number of names that Ajv compares one by one with each name of the value. */
function evaluatedNames(props: unknown): number {
  return props instanceof Name ? 0 : membersOf(props);
}

/** Number of objects and arrays in a schema: each may copy the name of the property it applies to. */
function subschemasIn(schema: unknown): number {
  if (typeof schema !== 'object' || schema === null) return 0;
  return Object.values(schema).reduce<number>((sum, inner) => sum + subschemasIn(inner), 1);
}

function noteReference(cxt: KeywordCxt, keyword: string, references: ReferenceGraph): void {
  const { schema, parentSchema, it } = cxt;
  const from = schemaOf(it.schemaEnv);
  // Data level 0 is the value that the compiled function was called with.
  const reference = { isSameValue: it.dataLevel === 0, at: parentSchema, keyword };
  if (keyword === '$dynamicAnchor') references.addAnchor(`${schema}`, it.schema);
  if (keyword === '$recursiveAnchor') references.addAnchor('', it.schema);
  if (keyword === '$ref') {
    const target = targetOf(cxt);
    if (target !== null) references.addReference(from, { ...reference, to: target });
  }
  if (keyword === '$dynamicRef' || keyword === '$recursiveRef') {
    // Ajv calls the schemas with this anchor, or without one the schema that contains the reference.
    references.addReference(from, { ...reference, to: `${schema}`.slice(1) });
    references.addReference(from, { ...reference, to: from });
  }
}

/** Target of a `$ref`; null for a boolean or a small schema, which Ajv inlines. */
function targetOf({ schema, it }: KeywordCxt): object | null {
  const { root } = it.schemaEnv;
  if ((schema === '#' || schema === '#/') && it.baseId === root.baseId) return schemaOf(root);
  const target = resolveRef.call(it.self, root, it.baseId, schema);
  return target instanceof SchemaEnv ? schemaOf(target) : null;
}
