import { z } from 'zod';
import { documentReference } from '../documents/document.ts';
import { bareHost, hostWithOptionalScheme, port, urlPath } from './hosts.ts';
import { secretRef } from './secret-ref.ts';

export const sslMode = z.enum(['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']);

/** PostgreSQL cuts longer names, and two that differ only at their end would become one. */
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
  collection: z
    .string()
    .regex(new RegExp(`^${identifier}(?:\\.${identifier})?$`), 'must be a table name like docs or kb.docs: letters, digits and underscores'),
  /** The metadata key that holds a document's body. */
  content_key: z.string().min(1).default('content'),
  /** Part of every search. */
  metadata_filter: z.record(z.string(), z.unknown()).default({}),
  embedding_model: z.string().min(1),
  /** Equals the dimension of the vector column. */
  embedding_dimensions: z.number().int().min(1),
  top_k: topK,
  /** More instructions for the call that makes a query of the conversation; null: none. */
  prompt: documentReference.nullable().default(null),
});

/** A search service of one's own, asked with a POST. */
const externalSearch = z.strictObject({
  type: z.literal('external'),
  /** With its scheme: `http://` where none was given. */
  hostname: hostWithOptionalScheme,
  port,
  path: urlPath,
  api_key: secretRef.nullable().default(null),
  top_k: topK,
  /** How many of the newest messages are sent along. */
  max_messages: z.number().int().min(1).default(20),
  /** After it the agent answers without what the search would have brought. */
  timeout_seconds: z.number().positive().default(5),
});

export const search = z.discriminatedUnion('type', [pgvectorSearch, externalSearch]);
