import { openNatsBus } from '#bus/nats/nats-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { openRouterConfig } from '#shared/config/open-router-config.ts';
import { addressOf } from '#shared/lifecycle/boot.ts';
import { busCheck, cacheCheck, databaseCheck } from '#shared/lifecycle/checks.ts';
import { onHangUp } from '#shared/lifecycle/hang-up.ts';
import { runProcess, type Starting } from '#shared/lifecycle/run-process.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrateInBackground } from '#shared/storage/migrate-in-background.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { openRedis } from '#shared/storage/redis/open-redis.ts';
import { openTracing } from '#shared/telemetry/open-tracing.ts';
import { within } from '#shared/within.ts';
import { parseConfig } from './config.ts';
import { openRouterPort } from './open-router-port.ts';
import { startRouterGateway } from './service.ts';

/** A start with a reachable database is ready with its keys. */
const FIRST_MIGRATION_MS = 2_000;

/** The process `router-gateway`: listens first, then connects to NATS, and serves the router's HTTP API, with or without PostgreSQL and Redis. */
await runProcess({
  name: 'router-gateway',
  parseConfig,
  async start({ config, environment, log, metrics, step, releasers }) {
    const port = await step('opening the port', () => openRouterPort(config, 'PORT'));
    releasers.add('public port', () => port.close());
    log.info({ url: port.url }, 'listening, and not ready yet');
    const file = { path: config.routerConfigPath, environment, use: { secrets: 'keys' } } as const;
    const { living: routerConfig, reload, stop } = await openRouterConfig(file, { clock: systemClock, log, metrics });
    releasers.add('router configuration', stop);
    releasers.add('reload on SIGHUP', onHangUp(reload));
    const tracing = await openTracing({
      config: config.tracing,
      keepsTraces: config.keepsTraces,
      service: 'router-gateway',
      log,
      onDrop: (count) => metrics.add('telemetryDropped', { kind: 'spans' }, count),
    });
    releasers.add('tracing', () => tracing.stop());
    const bus = await step(`connecting to NATS at ${addressOf(config.nats.servers)}`, () => openNatsBus({ ...config.nats, log }));
    releasers.add('bus', () => bus.close());
    const { database, cache } = await openStores(config, { log, step, releasers });
    const { houseSecret } = config;
    const gateway = await step('starting the HTTP server', () =>
      startRouterGateway({ config, routerConfig, environment, houseSecret, bus, database, cache, log, metrics, tracing, clock: systemClock }, port),
    );
    releasers.add('router gateway', () => gateway.stop());
    const storeChecks = [...(database === null ? [] : [databaseCheck(database, { isNeeded: false })]), ...(cache === null ? [] : [cacheCheck(cache)])];
    return { url: gateway.url, checks: [busCheck(bus), ...storeChecks] };
  },
});

/** Neither store is needed: the start goes on without a reply, and the schema is migrated once the database can be reached. */
async function openStores(
  { databaseUrl, redisUrl }: Pick<ReturnType<typeof parseConfig>, 'databaseUrl' | 'redisUrl'>,
  { log, step, releasers }: Pick<Starting<unknown>, 'log' | 'step' | 'releasers'>,
): Promise<{ database: Database | null; cache: Cache | null }> {
  let database: Database | null = null;
  if (databaseUrl !== null) {
    const opened = await openPostgres({ url: databaseUrl, applicationName: 'router-gateway', log, awaitsServer: false });
    releasers.add('database', () => opened.close());
    const migration = migrateInBackground({ database: opened, log });
    releasers.add('migration', () => migration.stop());
    await within(FIRST_MIGRATION_MS, migration.firstTry, () => {});
    database = opened;
  }
  if (redisUrl === null) return { database, cache: null };
  const cache = await step(`connecting to Redis at ${addressOf(redisUrl)}`, () => openRedis({ url: redisUrl, log }));
  releasers.add('cache', () => cache.close());
  return { database, cache };
}
