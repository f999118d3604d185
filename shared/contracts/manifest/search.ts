import { z } from 'zod';
import { documentReference } from '../documents/document.ts';
import { bareHost, hostWithOptionalScheme, port, urlPath } from './hosts.ts';
import { secretRef } from './secret-ref.ts';

export const sslMode = z.enum(['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']);

/** PostgreSQL truncates longer names, so that two could collide. */
const MAX_IDENTIFIER_LENGTH = 63;
const identifier = `[A-Za-z_][A-Za-z0-9_]{0,${MAX_IDENTIFIER_LENGTH - 1}}`;

const topK = z.number().int().min(1).default(5);

/** Documents in a table with a vector column. */
const pgvectorSearch = z.strictObject({
  type: z.literal('pgvector').default('pgvector'),
  hostname: bareHost,
  port,
  user: z.string().min(1).default('postgres'),
  password: secretRef,
  dbname: z.string().min(1).default('postgres'),
  sslmode: sslMode.default('require'),
  /** A table with one column of vectors and one of the type `jsonb`, the metadata. */
  collection: z
    .string()
    .regex(new RegExp(`^${identifier}(?:\\.${identifier})?$`), 'must be a table name like docs or kb.docs: letters, digits and underscores'),
  /** Metadata key with the document's body. */
  content_key: z.string().min(1).default('content'),
  /** What the metadata of each document has to contain. */
  metadata_filter: z.record(z.string(), z.unknown()).default({}),
  /** Of the router; the one that has made the vectors of the table. It also decides which routines and terms a message is like. */
  embedding_model: z.string().min(1),
  /** Must equal the vector column's dimension. */
  embedding_dimensions: z.number().int().min(1),
  top_k: topK,
  /** Further instructions for the model call that makes a query from the conversation; null: none. */
  prompt: documentReference.nullable().default(null),
});

/** A custom search service, called with POST. */
const externalSearch = z.strictObject({
  type: z.literal('external'),
  /** With scheme; default `http://`. */
  hostname: hostWithOptionalScheme,
  port,
  path: urlPath,
  api_key: secretRef.nullable().default(null),
  top_k: topK,
  /** Number of newest messages in the request. */
  max_messages: z.number().int().min(1).default(20),
  /** After it the agent replies without search results. */
  timeout_seconds: z.number().positive().default(5),
});

export const search = z.discriminatedUnion('type', [pgvectorSearch, externalSearch]);
