import type { FoundDocument } from '#bus/messages/found-document.ts';
import type { ToolWork } from '#bus/messages/tool.ts';
import type { RunningItem } from '#services/work/running-items.ts';
import type { BundleCache } from '#shared/config/bundle-cache.ts';
import { type Environment, resolveKey } from '#shared/config/secret-ref.ts';
import type { Manifest } from '#shared/contracts/manifest/manifest.ts';
import type { Database } from '#shared/storage/database.ts';
import { retryWhileTransient } from '#shared/storage/retry-while-transient.ts';
import { genAi } from '#shared/telemetry/gen-ai.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import { effectIds } from '../effect-ids.ts';
import type { ToolOutcome } from '../tools/result-data.ts';
import { boundedDocuments } from './bounded-documents.ts';
import type { ExternalSearches } from './external-search.ts';
import type { KnowledgeBases } from './knowledge-bases.ts';
import { SearchFailure } from './search-failure.ts';
import { readSessionFacts } from './session-facts.ts';

export type SearchWork = Extract<ToolWork, { type: 'search' }>;
type External = Extract<NonNullable<Manifest['agent_config']['search']>, { type: 'external' }>;

export interface RunSearchDeps {
  environment: Environment;
  database: Database;
  bundles: BundleCache;
  external: ExternalSearches;
  knowledgeBases: KnowledgeBases;
  log: Log;
  metrics: Metrics;
}

/** Retrieves documents, once. Every result is an outcome; it throws only for a lost lease or a cancelled item. */
export async function runSearch(work: SearchWork, running: RunningItem, deps: RunSearchDeps): Promise<ToolOutcome> {
  const { log, metrics } = deps;
  try {
    const documents = work.query === '' ? [] : await found(work, running, deps);
    running.span?.set({ 'switchyard.search.documents': documents.length });
    metrics.add('searches', { outcome: documents.length > 0 ? 'found' : 'empty' });
    return { type: 'result', data: { documents }, metadata: {}, isError: false };
  } catch (error) {
    running.leaseLost.throwIfAborted();
    if (running.isCancelled()) throw error;
    const failure = failureOf(error, running);
    metrics.add('searches', { outcome: failure.reason });
    log.warn({ ...effectIds(work), reason: failure.reason, err: failure }, 'a search has failed: the turn replies without documents');
    return { type: 'failed', reason: failure.reason, message: failure.message };
  }
}

async function found(work: SearchWork, running: RunningItem, deps: RunSearchDeps): Promise<FoundDocument[]> {
  const { body } = await retryWhileTransient(() => deps.bundles.read(work.bundleHash), running.signal);
  const { search } = body.manifest.agent_config;
  running.span?.set({ [genAi.dataSource]: search?.type });
  if (search === null || (search.type === 'pgvector') !== (work.vector !== undefined)) {
    throw new SearchFailure('refused', 'the configuration has no such search');
  }
  if (search.type === 'external') return boundedDocuments(await fromService(search, work, running, deps), search.top_k);
  running.span?.set({ 'db.system.name': 'postgresql', 'db.collection.name': search.collection });
  return boundedDocuments(await deps.knowledgeBases.search(search, work.vector ?? '', running.signal), search.top_k);
}

async function fromService(search: External, work: SearchWork, { signal }: RunningItem, { environment, database, external }: RunSearchDeps) {
  const { hostname, port, path, api_key: reference, top_k } = search;
  const { sessionId: session_id, query } = work;
  const { customerId: customer_id, metadata } = await retryWhileTransient(() => readSessionFacts(database, session_id), signal);
  const messages = work.messages.map(({ role, text, createdAt: created_at }) => ({ role, text, created_at }));
  const bearer = reference === null ? null : resolveKey(reference, environment);
  return external.search({ url: `${hostname}:${port}${path}`, bearer, body: { query, top_k, messages, session_id, customer_id, metadata }, signal });
}

function failureOf(error: unknown, { cause }: RunningItem): SearchFailure {
  if (cause === 'deadline') return new SearchFailure('timeout', 'the search took longer than it may');
  return error instanceof SearchFailure ? error : new SearchFailure('unreachable', 'the search could not be made', { cause: error });
}
