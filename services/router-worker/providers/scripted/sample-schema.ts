import { z } from 'zod';

/** Schemas nest, and may name themselves. */
const MAX_DEPTH = 12;
const MAX_ITEMS = 20;
const MAX_TEXT = 200;

const number = z.number().optional().catch(undefined);
const list = z.array(z.unknown()).optional().catch(undefined);
const record = z.record(z.string(), z.unknown()).optional().catch(undefined);

/** What we read of a JSON Schema. Anything else in it is passed over, so a schema never breaks an answer. */
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

/** A value that the text offers for a field, or undefined. Only for fields without parts. */
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
 * The smallest value that fits a schema: required fields, and those for which `suggest` has a value. The same schema and suggestions
 * give the same value. Patterns are not obeyed.
 */
export function sampleOf(schema: unknown, suggest: Suggest): unknown {
  return sample({ schema, name: '', isRequired: true, depth: 0 }, schema, suggest);
}

interface Place {
  schema: unknown;
  name: string;
  isRequired: boolean;
  depth: number;
}

function sample({ schema, name, isRequired, depth }: Place, root: unknown, suggest: Suggest): unknown {
  const node = resolved(schema, root);
  if (depth > MAX_DEPTH) return null;
  if (node.const !== undefined) return node.const;
  const type = typeOf(node);
  const [alternative] = type === null ? (node.anyOf ?? node.oneOf ?? []) : [];
  if (type !== 'object' && type !== 'array' && alternative === undefined) {
    const suggested = suggest(name, node, isRequired);
    if (suggested !== undefined && fits(suggested, node)) return suggested;
  }
  for (const given of [node.default, node.examples?.[0], node.enum?.[0]]) if (given !== undefined) return given;
  const within = (inner: unknown, innerName: string, innerRequired: boolean) =>
    sample({ schema: inner, name: innerName, isRequired: innerRequired, depth: depth + 1 }, root, suggest);
  if (alternative !== undefined) return within(alternative, name, isRequired);
  switch (type) {
    case 'object':
      return sampleObject(node, root, suggest, within);
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

function sampleObject(node: SchemaNode, root: unknown, suggest: Suggest, within: (schema: unknown, name: string, isRequired: boolean) => unknown): unknown {
  const fields: [string, unknown][] = [];
  const required = new Set(node.required ?? []);
  for (const [name, schema] of Object.entries(node.properties ?? {})) {
    const inner = resolved(schema, root);
    if (required.has(name)) fields.push([name, within(schema, name, true)]);
    else {
      const type = typeOf(inner);
      const suggested = type === 'object' || type === 'array' ? undefined : suggest(name, inner, false);
      if (suggested !== undefined && fits(suggested, inner)) fields.push([name, suggested]);
    }
  }
  return Object.fromEntries(fields);
}

/** A schema with its reference followed and its `allOf` laid together. */
function resolved(schema: unknown, root: unknown): SchemaNode {
  let node = parse(schema);
  for (let hops = 0; node.$ref !== undefined && hops < MAX_DEPTH; hops += 1) node = parse(target(node.$ref, root));
  for (const part of node.allOf ?? []) {
    const inner = parse(part);
    node = { ...inner, ...node, properties: { ...inner.properties, ...node.properties }, required: [...(inner.required ?? []), ...(node.required ?? [])] };
  }
  return node;
}

/** Follows `#/…`; other references lead nowhere. */
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

function parse(schema: unknown): SchemaNode {
  const parsed = schemaNode.safeParse(schema);
  return parsed.success ? parsed.data : schemaNode.parse({});
}

function typeOf(node: SchemaNode): string | null {
  const types = [node.type ?? []].flat();
  const named = types.find((type) => type !== 'null') ?? types[0];
  if (named !== undefined) return named;
  if (node.properties !== undefined) return 'object';
  return node.items === undefined ? null : 'array';
}

/** Whether a value found in a text is within the bounds of its field. */
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
