import { z } from 'zod';

/** Schemas nest and may be recursive. */
const MAX_DEPTH = 12;
const MAX_ITEMS = 20;
const MAX_TEXT = 200;
/** Per sample; each field of a parsed node is a step. References expand a small schema without bound, in one tick: 20,000 steps take about 50 ms. */
const MAX_STEPS = 20_000;
/** Per parsed node, beside its fields: about 20 us. */
const STEPS_PER_NODE = 10;
/** Per search of the text for a field's value, and per value of its `enum`. */
const STEPS_PER_SUGGESTION = 100;
const STEPS_PER_ENUM_VALUE = 10;

const number = z.number().optional().catch(undefined);
const list = z.array(z.unknown()).optional().catch(undefined);
const record = z.record(z.string(), z.unknown()).optional().catch(undefined);

/** The JSON Schema keywords that are read; others are ignored, so a schema never fails an answer. */
const schemaNode = z.object({
  $ref: z.string().optional().catch(undefined),
  type: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .catch(undefined),
  const: z.unknown().optional(),
  default: z.unknown().optional(),
  enum: list,
  examples: list,
  anyOf: list,
  oneOf: list,
  allOf: list,
  properties: record,
  required: z.array(z.string()).optional().catch(undefined),
  items: z.unknown().optional(),
  minItems: number,
  minLength: number,
  minimum: number,
  exclusiveMinimum: number,
  maximum: number,
  format: z.string().optional().catch(undefined),
  description: z.string().optional().catch(undefined),
});
export type SchemaNode = z.infer<typeof schemaNode>;

/** A value from the text for a scalar field, or undefined. */
export type Suggest = (name: string, schema: SchemaNode, isRequired: boolean) => unknown;

const FORMATS: Readonly<Record<string, string>> = {
  date: '2000-01-01',
  time: '12:00:00Z',
  'date-time': '2000-01-01T12:00:00Z',
  email: 'nobody@example.com',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
};

/**
 * The smallest value that fits a schema: required fields, and those with a suggestion. Deterministic. Patterns are ignored. Past the step budget fields are
 * null or omitted.
 */
export function sampleOf(schema: unknown, suggest: Suggest): unknown {
  return sample({ schema, name: '', isRequired: true, depth: 0 }, new Walk(schema, suggest));
}

class Walk {
  readonly root: unknown;
  readonly #suggest: Suggest;
  #stepsLeft = MAX_STEPS;

  constructor(root: unknown, suggest: Suggest) {
    this.root = root;
    this.#suggest = suggest;
  }

  get isOver(): boolean {
    return this.#stepsLeft <= 0;
  }

  take(steps: number): void {
    this.#stepsLeft -= steps;
  }

  suggestion(name: string, schema: SchemaNode, isRequired: boolean): unknown {
    this.take(STEPS_PER_SUGGESTION + STEPS_PER_ENUM_VALUE * (schema.enum?.length ?? 0));
    return this.isOver ? undefined : this.#suggest(name, schema, isRequired);
  }
}

interface SampleTarget {
  schema: unknown;
  name: string;
  isRequired: boolean;
  depth: number;
}

function sample({ schema, name, isRequired, depth }: SampleTarget, walk: Walk): unknown {
  if (depth > MAX_DEPTH || walk.isOver) return null;
  const node = resolved(schema, walk);
  if (node.const !== undefined) return node.const;
  const type = typeOf(node);
  const [alternative] = type === null ? (node.anyOf ?? node.oneOf ?? []) : [];
  if (type !== 'object' && type !== 'array' && alternative === undefined) {
    const suggested = walk.suggestion(name, node, isRequired);
    if (suggested !== undefined && fits(suggested, node)) return suggested;
  }
  for (const given of [node.default, node.examples?.[0], node.enum?.[0]]) if (given !== undefined) return given;
  const within = (inner: unknown, innerName: string, innerRequired: boolean) =>
    sample({ schema: inner, name: innerName, isRequired: innerRequired, depth: depth + 1 }, walk);
  if (alternative !== undefined) return within(alternative, name, isRequired);
  switch (type) {
    case 'object':
      return sampleObject(node, walk, within);
    case 'array':
      return Array.from({ length: Math.min(node.minItems ?? 0, MAX_ITEMS) }, () => within(node.items, name, true));
    case 'string':
      return (FORMATS[node.format ?? ''] ?? '').padEnd(Math.min(node.minLength ?? 0, MAX_TEXT), 'x');
    case 'integer':
    case 'number':
      return smallestNumber(node);
    case 'boolean':
      return false;
    default:
      return null;
  }
}

function sampleObject(node: SchemaNode, walk: Walk, within: (schema: unknown, name: string, isRequired: boolean) => unknown): unknown {
  const fields: [string, unknown][] = [];
  const required = new Set(node.required ?? []);
  for (const [name, schema] of Object.entries(node.properties ?? {})) {
    if (walk.isOver) break;
    if (required.has(name)) fields.push([name, within(schema, name, true)]);
    else {
      const inner = resolved(schema, walk);
      const type = typeOf(inner);
      const suggested = type === 'object' || type === 'array' ? undefined : walk.suggestion(name, inner, false);
      if (suggested !== undefined && fits(suggested, inner)) fields.push([name, suggested]);
    }
  }
  return Object.fromEntries(fields);
}

/** Follows the reference and merges `allOf`. */
function resolved(schema: unknown, walk: Walk): SchemaNode {
  let node = parse(schema, walk);
  for (let hops = 0; node.$ref !== undefined && hops < MAX_DEPTH && !walk.isOver; hops += 1) node = parse(target(node.$ref, walk.root), walk);
  for (const part of node.allOf ?? []) {
    if (walk.isOver) break;
    const inner = parse(part, walk);
    // The merge copies both.
    walk.take(fieldsOf(node));
    node = { ...inner, ...node, properties: { ...inner.properties, ...node.properties }, required: [...(inner.required ?? []), ...(node.required ?? [])] };
  }
  return node;
}

/** Resolves `#/…`; other references give an empty schema. */
function target(reference: string, root: unknown): unknown {
  if (!reference.startsWith('#')) return {};
  let at: unknown = root;
  for (const step of reference.split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return {};
    at = Object.entries(at).find(([name]) => name === key)?.[1];
  }
  return at;
}

/** What is no schema is read as the empty one. */
export function nodeOf(schema: unknown): SchemaNode {
  const parsed = schemaNode.safeParse(schema);
  return parsed.success ? parsed.data : schemaNode.parse({});
}

function parse(schema: unknown, walk: Walk): SchemaNode {
  const node = nodeOf(schema);
  walk.take(STEPS_PER_NODE + fieldsOf(node));
  return node;
}

function fieldsOf({ properties = {}, required = [] }: SchemaNode): number {
  return Object.keys(properties).length + required.length;
}

function typeOf(node: SchemaNode): string | null {
  const types = [node.type ?? []].flat();
  const named = types.find((type) => type !== 'null') ?? types[0];
  if (named !== undefined) return named;
  if (node.properties !== undefined) return 'object';
  return node.items === undefined ? null : 'array';
}

function fits(value: unknown, { minimum, exclusiveMinimum, maximum, minLength }: SchemaNode): boolean {
  if (typeof value === 'string') return value.length >= (minLength ?? 0);
  if (typeof value !== 'number') return true;
  return value >= (minimum ?? value) && value <= (maximum ?? value) && (exclusiveMinimum === undefined || value > exclusiveMinimum);
}

function smallestNumber({ minimum, exclusiveMinimum, maximum }: SchemaNode): number {
  if (minimum !== undefined) return Math.max(0, Math.ceil(minimum)) === 0 && (maximum ?? 0) >= 0 ? 0 : minimum;
  if (exclusiveMinimum !== undefined) return Math.max(0, Math.floor(exclusiveMinimum) + 1);
  return maximum !== undefined && maximum < 0 ? maximum : 0;
}
