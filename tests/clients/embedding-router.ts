import { afterAll, beforeAll } from 'vitest';
import type { Bus } from '../../bus/bus.ts';
import { openMemoryBus } from '../../bus/memory/memory-bus.ts';
import { environment, KEY, openTestApp } from '../../services/router-gateway/test-support/harness.ts';
import { startRouterWorker } from '../../services/router-worker/service.ts';
import { systemClock } from '../../shared/clock.ts';
import { routerConfig } from '../../shared/config/router-config.ts';
import { hashOfSecret } from '../../shared/keys/caller-key.ts';
import { fileKeys } from '../../shared/keys/file-keys.ts';
import type { Database } from '../../shared/storage/database.ts';
import { openTestDatabase } from '../../shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '../../shared/telemetry/log.ts';
import { type EmbeddingUpstream, openEmbeddingUpstream } from './embedding-upstream.ts';

export const EMBEDDING_MODEL = 'loop/embedding';
export const CHAT_MODEL = 'loop/chat';
export const SCRIPTED_MODEL = 'scripted/embedding';
/** Of one request per minute. */
export const RATED_KEY = 'sk-rated';
/** Inputs of one request to the second upstream. */
export const SMALL_BATCH = 2;

interface Opened {
  /** Ends in `/api/v1`. */
  baseUrl: string;
  first: EmbeddingUpstream;
  second: EmbeddingUpstream;
  bus: Bus;
  database: Database;
}

/** A gateway on a real port and a worker, on one bus, with two upstreams on loopback and the scripted model behind them: one of each per file. */
export function useEmbeddingRouter(): Opened & { apiKey: string } {
  let opened: Opened | null = null;
  let close = async () => {};
  beforeAll(async () => {
    const [first, second] = await Promise.all([openEmbeddingUpstream(), openEmbeddingUpstream()]);
    const database = await openTestDatabase();
    const bus = await openMemoryBus({ database, clock: systemClock });
    const config = configOf(first, second);
    const keysOfFile = fileKeys(config, environment);
    const worker = await startRouterWorker({ config, environment: {}, bus, database, cache: null, fileKeys: keysOfFile, log: silentLog, clock: systemClock });
    const gateway = openTestApp(bus, { config, variables: environment, database });
    const baseUrl = `${await gateway.app.listen({ host: '127.0.0.1', port: 0 })}/api/v1`;
    opened = { first, second, bus, database, baseUrl };
    close = async () => {
      await gateway.close();
      await worker.stop();
      await bus.close();
      await Promise.all([database.close(), first.close(), second.close()]);
    };
  });
  afterAll(() => close());
  const current = () => {
    if (opened === null) throw new Error('the router is not open');
    return opened;
  };
  return {
    get baseUrl() {
      return current().baseUrl;
    },
    get first() {
      return current().first;
    },
    get second() {
      return current().second;
    },
    get bus() {
      return current().bus;
    },
    get database() {
      return current().database;
    },
    apiKey: KEY,
  };
}

function configOf(first: EmbeddingUpstream, second: EmbeddingUpstream) {
  const prices = { prompt: '1', completion: '0' };
  return routerConfig.parse({
    providers: [
      { slug: 'first', name: 'First', kind: 'openai-compatible', profile: 'openai', base_url: first.baseUrl },
      { slug: 'second', name: 'Second', kind: 'openai-compatible', base_url: second.baseUrl },
      { slug: 'scripted', name: 'Scripted', kind: 'scripted' },
    ],
    models: [
      { id: CHAT_MODEL, endpoints: [{ provider: 'scripted', upstream_model: 'assistant', prices }] },
      {
        id: EMBEDDING_MODEL,
        embeddings: { dimensions: 4 },
        order: 'file',
        endpoints: [
          { provider: 'first', upstream_model: 'upstream-model', prices },
          { provider: 'second', upstream_model: 'other-model', prices, max_inputs: SMALL_BATCH },
        ],
      },
      { id: SCRIPTED_MODEL, embeddings: { dimensions: 256 }, endpoints: [{ provider: 'scripted', upstream_model: 'embedding', prices }] },
    ],
    timeouts: { first_token_ms: 2_000 },
    keys: [
      { id: 'one', key: '${KEY_ONE}' },
      { id: 'two', key: '${KEY_TWO}', limit: '0.000050' },
      { id: 'rated', key: `sha256:${hashOfSecret(RATED_KEY)}`, limits: { requests_per_minute: 1 } },
    ],
  });
}
