import type { FoundDocument } from '#bus/messages/found-document.ts';
import { postgresUrl } from '#shared/config/postgres-url.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { Manifest } from '#shared/contracts/manifest/manifest.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Database } from '#shared/storage/database.ts';
import { sqlStateOf } from '#shared/storage/transient-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { untilAborted } from '../until-aborted.ts';
import { type Collection, readCollection, UnusableCollection } from './collection.ts';
import { nearestDocuments } from './nearest-documents.ts';
import { SearchFailure } from './search-failure.ts';

export type VectorSearch = Extract<NonNullable<Manifest['agent_config']['search']>, { type: 'pgvector' }>;

/** Opens a server without waiting for it. */
export type OpenKnowledgeBase = (options: {
  url: string;
  maxConnections: number;
  statementTimeoutMs: number;
  settings: Readonly<Record<string, string>>;
  awaitsServer: false;
}) => Promise<Database>;

interface Opened {
  database: Database;
  /** By table and dimensions. */
  collections: Map<string, Promise<Collection>>;
}

/** Of older configurations, whose turns end in minutes: the one that was opened first is closed for another. */
const MAX_SERVERS = 4;
/** Of each server, beside those of the runtime's own database. */
const MAX_CONNECTIONS = 4;
/** A search has ten seconds in all. */
const STATEMENT_TIMEOUT_MS = 5_000;
/** Of pgvector from 0.8 on: an index goes on until enough documents fit the filter. Older ones return fewer. */
const SETTINGS = { default_transaction_read_only: 'on', 'hnsw.iterative_scan': 'strict_order', 'ivfflat.iterative_scan': 'relaxed_order' };

const FIELDS = 'agent_config.search';
const BYTES_PER_FLOAT = 4;

/** Tables with vectors at the servers of configurations. A table is checked before it is searched for the first time. */
export class KnowledgeBases {
  readonly #environment: Environment;
  readonly #open: OpenKnowledgeBase;
  readonly #log: Log;
  readonly #servers = new Map<string, Promise<Opened>>();

  constructor({ environment, openKnowledgeBase, log }: { environment: Environment; openKnowledgeBase: OpenKnowledgeBase; log: Log }) {
    this.#environment = environment;
    this.#open = openKnowledgeBase;
    this.#log = log;
  }

  /**
   * At the start. A server that can't be reached is checked with the first search.
   * @throws `config.invalid`, naming the field, for a table that can't be searched or a server that refuses the login
   */
  async check(search: VectorSearch): Promise<void> {
    try {
      await this.#collection(search);
    } catch (error) {
      if (error instanceof UnusableCollection) throw new SwitchyardError('config.invalid', `${FIELDS}.${error.field}: ${error.message}`);
      if (error instanceof SwitchyardError && error.code === 'config.invalid') throw error;
      const { reason, message } = failureOf(error);
      if (reason === 'auth_failed') throw new SwitchyardError('config.invalid', `${FIELDS}: ${message}`);
      this.#log.warn({ reason }, `${FIELDS}: ${message}: the table is checked with the first search`);
    }
  }

  /**
   * The documents nearest to a vector, the best first.
   * @param vector 32-bit floats, little endian, in base64
   * @throws SearchFailure, or the reason of the signal
   */
  async search(search: VectorSearch, vector: string, signal: AbortSignal): Promise<FoundDocument[]> {
    const { top_k: topK, metadata_filter: filter, content_key: contentKey, embedding_dimensions: dimensions } = search;
    const floats = floatsIn(vector);
    if (floats?.length !== dimensions) {
      throw new SearchFailure('refused', `the model of vectors gave ${floats?.length ?? 'no'} dimensions in place of ${dimensions}`);
    }
    try {
      const { database, collection } = await untilAborted(this.#collection(search), signal);
      return await untilAborted(nearestDocuments(database, collection, { vector: floats, topK, filter, contentKey }), signal);
    } catch (error) {
      signal.throwIfAborted();
      const failure = failureOf(error);
      // The table may have been made anew.
      if (failure.reason === 'refused') await this.#forget(search);
      throw failure;
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#servers.values()].map(closed));
  }

  async #collection(search: VectorSearch): Promise<{ database: Database; collection: Collection }> {
    const { database, collections } = await this.#server(search);
    const key = keyOf(search);
    const reading = collections.get(key) ?? readCollection(database, search.collection, search.embedding_dimensions);
    collections.set(key, reading);
    try {
      return { database, collection: await reading };
    } catch (error) {
      collections.delete(key);
      throw error;
    }
  }

  #server(search: VectorSearch): Promise<Opened> {
    const url = postgresUrl(search, FIELDS, this.#environment);
    const known = this.#servers.get(url);
    if (known !== undefined) return known;
    const limits = { maxConnections: MAX_CONNECTIONS, statementTimeoutMs: STATEMENT_TIMEOUT_MS, settings: SETTINGS };
    const opening = this.#open({ url, ...limits, awaitsServer: false }).then((database) => ({ database, collections: new Map() }));
    this.#servers.set(url, opening);
    opening.catch(() => this.#servers.delete(url));
    const [eldest] = this.#servers.keys();
    const replaced = this.#servers.size > MAX_SERVERS && eldest !== undefined ? this.#servers.get(eldest) : undefined;
    if (replaced !== undefined && eldest !== undefined) {
      this.#servers.delete(eldest);
      closed(replaced).catch((error: unknown) => this.#log.warn({ err: error }, 'a knowledge base could not be closed'));
    }
    return opening;
  }

  async #forget(search: VectorSearch): Promise<void> {
    const { collections } = await this.#server(search);
    collections.delete(keyOf(search));
  }
}

function keyOf({ collection, embedding_dimensions: dimensions }: VectorSearch): string {
  return `${collection} ${dimensions}`;
}

async function closed(opening: Promise<Opened>): Promise<void> {
  const opened = await opening.catch(() => null);
  await opened?.database.close();
}

/** Null: they are no floats. */
function floatsIn(vector: string): Float32Array | null {
  const bytes = Buffer.from(vector, 'base64');
  if (bytes.byteLength === 0 || bytes.byteLength % BYTES_PER_FLOAT !== 0) return null;
  return Float32Array.from({ length: bytes.byteLength / BYTES_PER_FLOAT }, (_, index) => bytes.readFloatLE(index * BYTES_PER_FLOAT));
}

/** The server's texts may quote documents, and the user's name: they stay out of messages. */
function failureOf(error: unknown): SearchFailure {
  if (error instanceof SearchFailure) return error;
  if (error instanceof UnusableCollection) return new SearchFailure('refused', `${FIELDS}.${error.field}: ${error.message}`);
  if (error instanceof SwitchyardError && error.code === 'config.invalid') return new SearchFailure('refused', error.message);
  const state = sqlStateOf(error) ?? sqlStateOf(error instanceof Error ? error.cause : null);
  if (state === null) return new SearchFailure('unreachable', 'the knowledge base can not be reached');
  if (state.startsWith('28') || state === '3D000') return new SearchFailure('auth_failed', `the knowledge base refuses the login (${state})`);
  if (state === '57014') return new SearchFailure('timeout', `the knowledge base took longer than ${STATEMENT_TIMEOUT_MS} ms`);
  const isAway = /^(08|53|57|58)/.test(state);
  return new SearchFailure(isAway ? 'unreachable' : 'refused', `the knowledge base refused the search (${state})`);
}
