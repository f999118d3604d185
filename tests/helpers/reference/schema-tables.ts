import { type CommentedLiteral, commentOf } from './doc-comments.ts';

/** The part of a JSON Schema that a reference shows. */
export interface ShownSchema {
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  default?: unknown;
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  properties?: Record<string, ShownSchema>;
  required?: string[];
  additionalProperties?: ShownSchema | boolean;
  items?: ShownSchema;
  anyOf?: ShownSchema[];
  oneOf?: ShownSchema[];
  allOf?: ShownSchema[];
  $ref?: string;
  description?: string;
}

/** Longer ones say little to a reader, and the error of a start says what they want. */
const MAX_PATTERN_CHARS = 60;
/** What credentials are named by in files. */
const SECRET_REFERENCE = '^\\$\\{([A-Z_][A-Z0-9_]*)\\}$';
const HEAD = '| Field | Type | Default | Meaning |\n|---|---|---|---|';

interface Row {
  path: string;
  schema: ShownSchema;
  isRequired: boolean;
  meaning: string;
}

interface Table {
  title: string;
  rows: Row[];
}

/** Tables of the fields of a schema, as Markdown: one of the object itself, and one of each form of a field that has several. */
export function schemaTables(schema: ShownSchema, title: string, literals: readonly CommentedLiteral[] = []): string {
  return tablesOf(schema, title, literals)
    .filter(({ rows }) => rows.length > 0)
    .map(({ title: heading, rows }) => `### ${heading}\n\n${HEAD}\n${rows.map(lineOf).join('\n')}`)
    .join('\n\n');
}

function tablesOf(schema: ShownSchema, title: string, literals: readonly CommentedLiteral[]): Table[] {
  const forms = formsOf(schema);
  if (forms.length > 1) return forms.flatMap((form, index) => tablesOf(form, `${title}, ${formName(form, index)}`, literals));
  const own: Table = { title, rows: [] };
  const others: Table[] = [];
  walk(forms[0] ?? schema, '');
  return [own, ...others];

  function walk(object: ShownSchema, prefix: string): void {
    const properties = object.properties ?? {};
    const names = new Set(Object.keys(properties));
    for (const [name, property] of Object.entries(properties)) {
      const path = `${prefix}${name}`;
      const meaning = property.description ?? commentOf(name, names, literals) ?? '';
      own.rows.push({ path, schema: property, isRequired: object.required?.includes(name) === true, meaning });
      below(property, path);
    }
  }

  function below(property: ShownSchema, path: string): void {
    const { inner, place } = innermost(property, path);
    const inners = formsOf(inner);
    const [only] = inners;
    if (inners.length > 1) others.push(...inners.flatMap((form, index) => tablesOf(form, `\`${place}\`, ${formName(form, index)}`, literals)));
    else if (only !== undefined) walk(only, `${place}.`);
  }
}

/** What lists and maps contain, and its path. */
function innermost(schema: ShownSchema, path: string): { inner: ShownSchema; place: string } {
  const plain = withoutNull(schema);
  if (plain.items !== undefined) return innermost(plain.items, `${path}[]`);
  if (typeof plain.additionalProperties === 'object' && plain.properties === undefined) return innermost(plain.additionalProperties, `${path}.*`);
  return { inner: plain, place: path };
}

/** The objects that a value may be. */
function formsOf(schema: ShownSchema): ShownSchema[] {
  const plain = withoutNull(schema);
  const variants = plain.oneOf ?? plain.anyOf;
  if (variants !== undefined) return variants.flatMap(formsOf);
  return plain.properties === undefined ? [] : [plain];
}

function withoutNull(schema: ShownSchema): ShownSchema {
  const variants = (schema.anyOf ?? schema.oneOf)?.filter(({ type }) => type !== 'null');
  return variants?.length === 1 ? (variants[0] ?? schema) : schema;
}

function formName({ properties = {} }: ShownSchema, index: number): string {
  const [named] = Object.entries(properties).flatMap(([name, { const: value }]) => (typeof value === 'string' ? [`\`${name}: ${value}\``] : []));
  return named ?? `form ${index + 1}`;
}

function lineOf({ path, schema, isRequired, meaning }: Row): string {
  const shown = schema.default === undefined ? '' : `\`${JSON.stringify(schema.default)}\``;
  const cells = [`\`${path}\``, typeOf(schema), isRequired ? 'required' : shown, meaning];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

/** In words. */
export function typeOf(schema: ShownSchema): string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? '';
    return `[${name}](#${name.toLowerCase()})`;
  }
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${value}\``).join(', ');
  const variants = schema.anyOf ?? schema.oneOf;
  if (variants !== undefined) return [...new Set(variants.map(typeOf))].join(', or ');
  if (schema.allOf !== undefined) return [...new Set(schema.allOf.map(typeOf))].join(' and ');
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type })).join(', or ');
  if (schema.type === undefined) return 'any';
  if (schema.type === 'array')
    return `list of ${schema.items === undefined ? 'any' : typeOf(schema.items)}${between(schema.minItems, schema.maxItems, 'entries')}`;
  if (schema.type === 'string') return textOf(schema);
  if (schema.type === 'integer' || schema.type === 'number') return numberOf(schema);
  if (schema.type === 'object' && schema.properties === undefined) return 'map';
  return { null: 'null', boolean: 'true or false' }[schema.type] ?? schema.type;
}

function textOf({ format, pattern, minLength, maxLength }: ShownSchema): string {
  if (pattern === SECRET_REFERENCE) return 'reference `${VARIABLE}`';
  const kind = { 'date-time': 'time (RFC 3339)', uri: 'URL', date: 'date', email: 'mail address' }[format ?? ''] ?? 'text';
  const like = kind === 'text' && pattern !== undefined && pattern.length <= MAX_PATTERN_CHARS && !pattern.includes('(?=') ? ` like \`${pattern}\`` : '';
  return `${kind}${like}${between(minLength === 1 ? undefined : minLength, maxLength, 'characters')}`;
}

function numberOf({ type, minimum, maximum, exclusiveMinimum }: ShownSchema): string {
  const kind = type === 'integer' ? 'whole number' : 'number';
  const least = minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum;
  const most = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  return `${kind}${exclusiveMinimum === undefined ? '' : ` above ${exclusiveMinimum}`}${between(least, most, '')}`;
}

function between(least: number | undefined, most: number | undefined, unit: string): string {
  const bounds = [...(least === undefined ? [] : [`at least ${least}`]), ...(most === undefined ? [] : [`at most ${most}`])];
  return bounds.length === 0 ? '' : `, ${`${bounds.join(', ')} ${unit}`.trim()}`;
}
