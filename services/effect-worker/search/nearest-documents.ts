import { toSql } from 'pgvector';
import type { FoundDocument } from '#bus/messages/found-document.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { Collection } from './collection.ts';

/** More characters than a prompt gets of all documents (bounded-documents.ts). */
const MAX_CHARACTERS = 32 * 1024;
const MAX_TITLE_CHARACTERS = 500;
/** One more than a URL may have: a longer one is left out later. */
const MAX_URL_CHARACTERS = 2_001;

export interface Nearest {
  vector: Float32Array;
  topK: number;
  /** What the metadata has to contain. */
  filter: Readonly<Record<string, unknown>>;
  /** Key of the body in the metadata. */
  contentKey: string;
}

/**
 * The nearest documents by cosine, the best first. Those without a text are left out. The server sends no more than a prompt may get.
 * @throws the database's errors
 */
export async function nearestDocuments(database: Queryable, collection: Collection, { vector, topK, filter, contentKey }: Nearest): Promise<FoundDocument[]> {
  const isFiltered = Object.keys(filter).length > 0;
  const parameters = [toSql([...vector]), topK, contentKey, ...(isFiltered ? [JSON.stringify(filter)] : [])];
  const { rows } = await database.query<Record<keyof FoundDocument, string | null>>(statementFor(collection, isFiltered), parameters);
  return rows.flatMap(({ content, title, url }) => (content === null || content.trim() === '' ? [] : [{ content, title, url }]));
}

/** The distance stands in `order by` as it is, so that an index on the vectors serves it. */
function statementFor({ table, vectors, extension, type, metadata }: Collection, isFiltered: boolean): string {
  const distance = `${vectors} operator(${extension}.<=>) $1::${extension}.${type}`;
  const nearest = `select ${metadata} as metadata, ${distance} as distance from ${table}
    where ${vectors} is not null${isFiltered ? ` and ${metadata} @> $4::jsonb` : ''} order by ${distance} limit $2`;
  const texts = `select left(metadata ->> $3, ${MAX_CHARACTERS}) as content, left(metadata ->> 'title', ${MAX_TITLE_CHARACTERS}) as title,
    left(metadata ->> 'url', ${MAX_URL_CHARACTERS}) as url, distance from (${nearest}) as nearest`;
  const before = 'sum(length(content)) over (order by distance rows between unbounded preceding and 1 preceding)';
  return `select content, title, url from (select *, coalesce(${before}, 0) as before from (${texts}) as texts) as summed
    where before < ${MAX_CHARACTERS} order by distance`;
}
