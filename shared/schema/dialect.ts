import { Ajv, type AnySchemaObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { metaSchemaProblems, type SchemaProblem } from './meta-schema-problems.ts';
import { compareByCanonicalJson } from './meter-keywords.ts';
import { refersInside } from './refers-inside.ts';
import { SchemaError } from './schema-error.ts';
import { StepBudget } from './step-budget.ts';

/** Unknown keywords and formats are annotations, as the standard has it. */
export const commonOptions = { strict: false, logger: false } as const satisfies Options;

/** Of the checks of schemas themselves. */
const steps = new StepBudget();

/**
 * What schemas in documents are asked besides, by keyword. The meta-schema's `format: regex` is left an annotation, since schemas of tools
 * may have what they never use; this one has another name.
 */
const ASKED = {
  pattern: { format: 'expression' },
  patternProperties: { propertyNames: { format: 'expression' } },
  $ref: { refersInside: true },
  $dynamicRef: { refersInside: true },
};

interface Draft {
  /** Of its meta-schema in Ajv. */
  id: string;
  create(options: Options): Ajv;
  /** The meta-schema with what is asked besides, at each place that holds a schema. */
  extend(metaSchema: AnySchemaObject): AnySchemaObject;
}

/** A draft of JSON Schema: compiles its schemas, and checks them by Ajv's meta-schema for it. */
export class Dialect {
  readonly create: Draft['create'];
  readonly #draft: Draft;
  /** Compiled when they are first needed: each takes some 60 ms of CPU. The second one goes on after an error. */
  #first: Ajv | null = null;
  #all: Ajv | null = null;
  #extended: AnySchemaObject | null = null;

  constructor(draft: Draft) {
    this.create = draft.create;
    this.#draft = draft;
  }

  /** Why this is no schema of the draft, null when it is one. */
  problemOf(schema: object): SchemaProblem | null {
    return problemsBy(this.#metaSchema(), schema)[0] ?? null;
  }

  /** Everything that is wrong with a schema in a document. */
  problemsOf(schema: object): SchemaProblem[] {
    const metaSchema = this.#metaSchema();
    this.#extended ??= this.#draft.extend(Object(metaSchema.schema));
    const first = problemsBy(this.#firstAjv().compile(this.#extended), schema);
    if (first.length === 0) return first;
    this.#all ??= this.#ajv(true);
    return problemsBy(this.#all.compile(this.#extended), schema);
  }

  #metaSchema(): ValidateFunction {
    const found = this.#firstAjv().getSchema(this.#draft.id);
    if (found === undefined) throw new TypeError(`Ajv has no meta-schema ${this.#draft.id}`);
    return found;
  }

  #firstAjv(): Ajv {
    this.#first ??= this.#ajv(false);
    return this.#first;
  }

  #ajv(allErrors: boolean): Ajv {
    const ajv = this.create({ ...commonOptions, allErrors, verbose: true });
    compareByCanonicalJson(ajv, steps);
    ajv.addFormat('expression', addFormats.default.get('regex'));
    ajv.addKeyword(refersInside);
    return ajv;
  }
}

const draft2020 = new Dialect({
  id: 'https://json-schema.org/draft/2020-12/schema',
  create: (options) => new Ajv2020(options),
  // The meta-schema refers to itself by this anchor, which the outermost schema decides. Unlike draft-07 it takes an empty `enum`, which
  // Ajv does not compile.
  extend: ({ $id }) => ({ $dynamicAnchor: 'meta', allOf: [{ $ref: $id }, { properties: { ...ASKED, enum: { minItems: 1 } } }] }),
});
const draft07 = new Dialect({
  id: 'http://json-schema.org/draft-07/schema',
  create: (options) => new Ajv(options),
  // Without an identifier it is a schema of its own, and `#` in it leads to this one.
  extend: ({ $id, ...metaSchema }) => ({ ...metaSchema, allOf: [{ properties: ASKED }] }),
});

/** @throws SchemaError for a `$schema` of another draft */
export function dialectOf({ $schema: uri }: Record<string, unknown>): Dialect {
  const name = typeof uri === 'string' ? uri.replace(/#$/, '').replace(/^https?:\/\//, '') : uri;
  if (name === undefined || name === 'json-schema.org/draft/2020-12/schema') return draft2020;
  if (name === 'json-schema.org/draft-07/schema') return draft07;
  throw new SchemaError(['$schema'], 'must be draft 2020-12 or draft-07');
}

function problemsBy(validate: ValidateFunction, schema: object): SchemaProblem[] {
  steps.reset();
  const problems = validate(schema) === true ? [] : metaSchemaProblems(schema, validate.errors ?? []);
  // The errors hold the schema.
  validate.errors = null;
  return problems;
}
