import { Ajv, type AnySchemaObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { metaSchemaProblems, type SchemaProblem } from './meta-schema-problems.ts';
import { compareByCanonicalJson } from './meter-keywords.ts';
import { refersInside } from './refers-inside.ts';
import { SchemaError } from './schema-error.ts';
import { StepBudget } from './step-budget.ts';

/**
 * Unknown keywords and formats are annotations, as the standard demands, and properties are those of the value itself: it has none called `constructor`
 * because all objects inherit one.
 */
export const commonOptions = { strict: false, logger: false, ownProperties: true } as const satisfies Options;

/** For checks of schemas against meta-schemas. */
const steps = new StepBudget();

/**
 * Further requirements for schemas in documents, by keyword. `expression` is the format `regex` under another name: the meta-schema's own
 * stays an annotation, since schemas of tools may have unused invalid patterns.
 */
const EXTRA_REQUIREMENTS = {
  pattern: { format: 'expression' },
  patternProperties: { propertyNames: { format: 'expression' } },
  $ref: { refersInside: true },
  $dynamicRef: { refersInside: true },
};

interface Draft {
  /** Id of its meta-schema in Ajv. */
  id: string;
  create(options: Options): Ajv;
  /** Adds ASKED to the meta-schema at each place of a schema. */
  extend(metaSchema: AnySchemaObject): AnySchemaObject;
}

/** A draft of JSON Schema: creates Ajv instances for it, and checks schemas by its meta-schema. */
export class Dialect {
  readonly create: Draft['create'];
  readonly #draft: Draft;
  /** Created lazily: each takes some 60 ms of CPU. `#all` goes on after an error. */
  #first: Ajv | null = null;
  #all: Ajv | null = null;
  #extended: AnySchemaObject | null = null;

  constructor(draft: Draft) {
    this.create = draft.create;
    this.#draft = draft;
  }

  /** The first violation of the meta-schema; null: valid. */
  problemOf(schema: object): SchemaProblem | null {
    return problemsBy(this.#metaSchema(), schema)[0] ?? null;
  }

  /** All errors of a schema in a document. */
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
  // The meta-schema refers to itself by this anchor, which the outermost schema defines. Unlike draft-07 it accepts an empty `enum`, which
  // Ajv refuses to compile.
  extend: ({ $id }) => ({ $dynamicAnchor: 'meta', allOf: [{ $ref: $id }, { properties: { ...EXTRA_REQUIREMENTS, enum: { minItems: 1 } } }] }),
});
const draft07 = new Dialect({
  id: 'http://json-schema.org/draft-07/schema',
  create: (options) => new Ajv(options),
  // Without `$id` it is a schema of its own, and its `#` references lead to the extended form.
  extend: ({ $id, ...metaSchema }) => ({ ...metaSchema, allOf: [{ properties: EXTRA_REQUIREMENTS }] }),
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
  // Errors retain the schema.
  validate.errors = null;
  return problems;
}
