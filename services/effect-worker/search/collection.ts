import type { Queryable } from '#shared/storage/database.ts';

/** A table of documents with vectors. Names are quoted. */
export interface Collection {
  table: string;
  vectors: string;
  /** Schema of the extension: also off the search path its types and operators are found. */
  extension: string;
  type: 'vector' | 'halfvec';
  /** Null: the column does not say, and there is no row. */
  dimensions: number | null;
  metadata: string;
}

/** Why a table can't be searched, with the field of the manifest's `search` that names it. */
export class UnusableCollection extends Error {
  readonly field: 'collection' | 'embedding_dimensions';

  constructor(field: UnusableCollection['field'], message: string) {
    super(message);
    this.name = 'UnusableCollection';
    this.field = field;
  }
}

interface Column {
  name: string;
  quoted: string;
  type: string;
  /** Dimensions of a vector; negative: it has any. */
  modifier: number;
  type_schema: string;
}

const COLUMNS = `
  select a.attname as name, quote_ident(a.attname) as quoted, t.typname as type, a.atttypmod as modifier, quote_ident(n.nspname) as type_schema
  from pg_attribute a join pg_type t on t.oid = a.atttypid join pg_namespace n on n.oid = t.typnamespace
  where a.attrelid = to_regclass($1) and a.attnum > 0 and not a.attisdropped
  order by a.attnum`;

/** Of metadata, where a table has several columns of its type. */
const METADATA = 'metadata';

/**
 * Finds the columns of a table by their types.
 * @param name of the table, as the manifest's schema allows it: letters, digits, underscores, and one point
 * @throws UnusableCollection; the database's errors
 */
export async function readCollection(database: Queryable, name: string, expected: number): Promise<Collection> {
  const table = quotedTable(name);
  const { rows: columns } = await database.query<Column>(COLUMNS, [table]);
  if (columns.length === 0) throw new UnusableCollection('collection', `there is no table ${name}`);
  const vectors = only(columns, ['vector', 'halfvec'], name);
  const metadata = columns.find((column) => column.type === 'jsonb' && column.name === METADATA) ?? only(columns, ['jsonb'], name);
  const type = vectors.type === 'halfvec' ? 'halfvec' : 'vector';
  const found = { table, vectors: vectors.quoted, extension: vectors.type_schema, type, metadata: metadata.quoted } as const;
  const dimensions = vectors.modifier > 0 ? vectors.modifier : await dimensionsOfFirst(database, found);
  if (dimensions !== null && dimensions !== expected) {
    throw new UnusableCollection('embedding_dimensions', `is ${expected}, but the column ${vectors.name} of ${name} has ${dimensions} dimensions`);
  }
  return { ...found, dimensions };
}

function only(columns: readonly Column[], types: readonly string[], table: string): Column {
  const [found, ...others] = columns.filter(({ type }) => types.includes(type));
  const kind = `of type ${types.join(' or ')}`;
  if (found === undefined) throw new UnusableCollection('collection', `${table} has no column ${kind}`);
  if (others.length === 0) return found;
  const names = [found, ...others].map(({ name }) => name).join(', ');
  throw new UnusableCollection(
    'collection',
    `${table} has several columns ${kind}: ${names}${types.includes('jsonb') ? `, and none is called ${METADATA}` : ''}`,
  );
}

async function dimensionsOfFirst(database: Queryable, { table, vectors, extension }: Omit<Collection, 'dimensions'>): Promise<number | null> {
  const text = `select ${extension}.vector_dims(${vectors}) as dimensions from ${table} where ${vectors} is not null limit 1`;
  const { rows } = await database.query<{ dimensions: number }>(text);
  return rows[0]?.dimensions ?? null;
}

function quotedTable(name: string): string {
  return name
    .split('.')
    .map((part) => `"${part.replaceAll('"', '""')}"`)
    .join('.');
}
