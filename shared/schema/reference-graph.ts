import type { SchemaEnv } from 'ajv/dist/compile/index.js';
import { SchemaError } from './schema-error.ts';

/**
 * Keywords of a schema with references expanded, which bounds how many a value is checked against. 24 definitions that each name the next
 * one twice expand to sixteen million; the largest published schemas to some tens of thousands. 100,000 keywords take some 5 ms per value.
 */
const MAX_EXPANDED_KEYWORDS = 100_000;

interface Node {
  keywords: number;
  references: Reference[];
}

interface Reference {
  /** The target schema, or the name of an anchor, which stands for all schemas that have it. */
  to: object | string;
  /** Whether it applies to the value itself, not to a property or item. */
  isSameValue: boolean;
  /** The schema that contains it. */
  at: object;
  keyword: string;
}

/** The references between compiled schemas, as Ajv resolves them. A node is a schema that is compiled on its own. */
export class ReferenceGraph {
  readonly #root: object;
  readonly #nodes = new Map<object, Node>();
  readonly #anchors = new Map<string, Set<object>>();
  readonly #compiled = new Set<SchemaEnv>();

  constructor(root: object) {
    this.#root = root;
  }

  addKeywords(compiled: SchemaEnv, keywords: number): void {
    this.#compiled.add(compiled);
    this.#node(schemaOf(compiled)).keywords += keywords;
  }

  *functions(): Generator<(value: unknown) => unknown> {
    for (const { validate } of this.#compiled) if (validate !== undefined) yield (value) => validate(value);
  }

  addReference(from: object, reference: Reference): void {
    this.#node(from).references.push(reference);
  }

  addAnchor(name: string, node: object): void {
    const anchored = this.#anchors.get(name) ?? new Set();
    this.#anchors.set(name, anchored.add(node));
  }

  /** @throws SchemaError for a cycle of references on the same value, which never ends, and for a schema that expands too far */
  check(): void {
    const done = new Set<object>();
    for (const node of this.#nodes.keys()) this.#refuseCycles(node, new Set(), done);
    const size = this.#expandedSize(this.#root, new Map());
    if (size > MAX_EXPANDED_KEYWORDS) throw new SchemaError([], `must not have more than ${MAX_EXPANDED_KEYWORDS} keywords with its references expanded`);
  }

  #node(schema: object): Node {
    const node = this.#nodes.get(schema) ?? { keywords: 0, references: [] };
    this.#nodes.set(schema, node);
    return node;
  }

  #targetsOf({ to }: Reference): Iterable<object> {
    return typeof to === 'string' ? (this.#anchors.get(to) ?? []) : [to];
  }

  /** Recursion is bounded by the number of keywords. */
  #refuseCycles(node: object, open: Set<object>, done: Set<object>): void {
    if (done.has(node)) return;
    open.add(node);
    for (const reference of this.#nodes.get(node)?.references ?? []) {
      if (!reference.isSameValue) continue;
      for (const target of this.#targetsOf(reference)) {
        if (open.has(target)) {
          throw new SchemaError([...(pathTo(this.#root, reference.at) ?? []), reference.keyword], 'must not lead back to itself for the same value');
        }
        this.#refuseCycles(target, open, done);
      }
    }
    open.delete(node);
    done.add(node);
  }

  /** Saturates at infinity. A recursive reference counts one: the value decides how often it is followed. */
  #expandedSize(node: object, sizes: Map<object, number>): number {
    const known = sizes.get(node);
    if (known !== undefined) return known;
    sizes.set(node, 1);
    const { keywords, references } = this.#node(node);
    let size = keywords;
    for (const reference of references) {
      for (const target of this.#targetsOf(reference)) size += this.#expandedSize(target, sizes);
    }
    const capped = size > MAX_EXPANDED_KEYWORDS ? Number.POSITIVE_INFINITY : size;
    sizes.set(node, capped);
    return capped;
  }
}

/** Ajv never compiles a boolean schema on its own. */
export function schemaOf({ schema }: SchemaEnv): object {
  return typeof schema === 'boolean' ? {} : schema;
}

/** Path of this very object in `value`; null: not in it. */
function pathTo(value: unknown, object: object): string[] | null {
  if (typeof value !== 'object' || value === null) return null;
  if (value === object) return [];
  for (const [key, inner] of Object.entries(value)) {
    const below = pathTo(inner, object);
    if (below !== null) return [key, ...below];
  }
  return null;
}
