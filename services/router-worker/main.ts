import { refuseOtherLog } from '#actors/runtime/partitions/one-log.ts';
import { hostRows } from '#actors/store/sql/host-rows.ts';
import { openNatsBus } from '#bus/nats/nats-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { readManifest } from '#shared/config/load-bundle.ts';
import { openRouterConfig } from '#shared/config/open-router-config.ts';
import { modelKeys } from '#shared/keys/file-keys.ts';
import { platformRouterOf } from '#shared/keys/platform-router.ts';
import { beside } from '#shared/lifecycle/beside.ts';
import { addressOf } from '#shared/lifecycle/boot.ts';
import { busCheck, cacheCheck, databaseCheck } from '#shared/lifecycle/checks.ts';
import { onHangUp } from '#shared/lifecycle/hang-up.ts';
import { runProcess, type Starting } from '#shared/lifecycle/run-process.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { openDatabaseClock } from '#shared/storage/database-clock.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { openRedis } from '#shared/storage/redis/open-redis.ts';
import { openTracing } from '#shared/telemetry/open-tracing.ts';
import { parseConfig } from './config.ts';
import { providerBlock } from './providers/registry.ts';
import { startRouterWorker } from './service.ts';

/** The process `router-worker`: connects to PostgreSQL and NATS, and executes router calls at the providers. */
await runProcess({
  name: 'router-worker',
  parseConfig,
  async start({ config, environment, log, metrics, step, releasers }) {
    const file = { path: config.routerConfigPath, environment, use: { secrets: 'calls', provider: providerBlock } } as const;
    const { living: routerConfig, reload, stop } = await openRouterConfig(file, { clock: systemClock, log, metrics });
    releasers.add('router configuration', stop);
    releasers.add('reload on SIGHUP', onHangUp(reload));
    const manifest = config.manifestPath === null ? null : await readManifest(config.manifestPath);
    const platform = manifest === null ? null : platformRouterOf(manifest, config.publicBaseUrl, environment);
    const tracing = await openTracing({
      config: config.tracing,
      service: 'router-worker',
      log,
      onDrop: (count) => metrics.add('telemetryDropped', { kind: 'spans' }, count),
    });
    releasers.add('tracing', () => tracing.stop());
    const openedBus = beside(() => step(`connecting to NATS at ${addressOf(config.nats.servers)}`, () => openNatsBus({ ...config.nats, log })));
    const postgres = `PostgreSQL at ${addressOf(config.databaseUrl)}`;
    const database = await step(`connecting to ${postgres}`, () => openPostgres({ url: config.databaseUrl, applicationName: 'router-worker', log }));
    releasers.add('database', () => database.close());
    await step(`migrating the schema of ${postgres}`, (because) => migrate(database, undefined, { onWait: because }), { limitMs: null });
    const databaseClock = await step(`reading the clock of ${postgres}`, () => openDatabaseClock({ database, log, metrics, clock: systemClock }));
    releasers.add('database clock', () => databaseClock.stop());
    const cache = await openCache(config, { log, step, releasers });
    const bus = await openedBus();
    releasers.add('bus', () => bus.close());
    await step('comparing the command log with that of the running hosts', () => refuseOtherLog({ hosts: hostRows(database), commands: bus.commands }));
    const { drainTimeoutMs, mail, outboundAllowHosts, scriptedWordsPerSecond } = config;
    const deps = {
      config: routerConfig,
      environment,
      bus,
      database,
      cache,
      fileKeys: routerConfig.derive((loaded) => modelKeys(loaded.config, environment)),
      log,
      metrics,
      tracing,
      clock: systemClock,
      actorClock: databaseClock,
      mail,
      outboundAllowHosts,
      platform,
      scriptedWordsPerSecond,
      drainTimeoutMs,
    };
    const worker = await step('starting the consumers', () => startRouterWorker(deps));
    releasers.add('router worker', () => worker.stop());
    return { url: null, checks: [busCheck(bus), databaseCheck(database), ...(cache === null ? [] : [cacheCheck(cache)])] };
  },
});

/** Not needed: the start goes on without a reply. */
async function openCache(
  { redisUrl }: Pick<ReturnType<typeof parseConfig>, 'redisUrl'>,
  { log, step, releasers }: Pick<Starting<unknown>, 'log' | 'step' | 'releasers'>,
): Promise<Cache | null> {
  if (redisUrl === null) return null;
  const cache = await step(`connecting to Redis at ${addressOf(redisUrl)}`, () => openRedis({ url: redisUrl, log }));
  releasers.add('cache', () => cache.close());
  return cache;
}
