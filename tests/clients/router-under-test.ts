import { afterAll, beforeAll } from 'vitest';
import { openMemoryBus } from '../../bus/memory/memory-bus.ts';
import { environment, KEY, openTestApp } from '../../services/router-gateway/test-support/harness.ts';
import { startRouterWorker } from '../../services/router-worker/service.ts';
import { systemClock } from '../../shared/clock.ts';
import { routerConfig } from '../../shared/config/router-config.ts';
import { openTestDatabase } from '../../shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '../../shared/telemetry/log.ts';
import { openWireUpstream, type WireUpstream } from './wire-upstream.ts';

export const MODEL = 'loop/back';

export interface RouterUnderTest {
  /** Ends in `/api/v1`. */
  baseUrl: string;
  apiKey: string;
  upstream: WireUpstream;
}

/** A gateway on a real port and a worker, on one bus, with an upstream on loopback behind them: one of each per file. */
export function useRouter(): RouterUnderTest {
  const opened: { upstream?: WireUpstream; baseUrl?: string; close(): Promise<void> } = { close: async () => {} };

  beforeAll(async () => {
    const upstream = await openWireUpstream();
    const database = await openTestDatabase();
    const bus = await openMemoryBus({ database, clock: systemClock });
    const config = routerConfig.parse({
      providers: [
        {
          slug: 'loopback',
          name: 'Loopback',
          kind: 'openai-compatible',
          base_url: upstream.baseUrl,
          extensions: ['reasoning', 'cache_control', 'reasoning_details'],
        },
      ],
      models: [{ id: MODEL, endpoints: [{ provider: 'loopback', upstream_model: 'upstream-model' }] }],
      keys: [{ id: 'one', key: '${KEY_ONE}' }],
    });
    const worker = await startRouterWorker({ config, environment: {}, bus, database, cache: null, log: silentLog, clock: systemClock });
    const gateway = openTestApp(bus, { config, variables: environment });
    opened.upstream = upstream;
    opened.baseUrl = `${await gateway.app.listen({ host: '127.0.0.1', port: 0 })}/api/v1`;
    opened.close = async () => {
      await gateway.close();
      await worker.stop();
      await bus.close();
      await Promise.all([database.close(), upstream.close()]);
    };
  });

  afterAll(() => opened.close());

  return {
    get baseUrl() {
      return opened.baseUrl ?? '';
    },
    apiKey: KEY,
    get upstream() {
      if (opened.upstream === undefined) throw new Error('the router is not open');
      return opened.upstream;
    },
  };
}
