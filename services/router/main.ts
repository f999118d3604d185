import { refuseOtherLog } from '#actors/runtime/partitions/one-log.ts';
import { hostRows } from '#actors/store/sql/host-rows.ts';
import { openNatsBus } from '#bus/nats/nats-bus.ts';
import { openRouterPort } from '#services/router-gateway/open-router-port.ts';
import { startRouterGateway } from '#services/router-gateway/service.ts';
import { providerBlock } from '#services/router-worker/providers/registry.ts';
import { startRouterWorker } from '#services/router-worker/service.ts';
import { systemClock } from '#shared/clock.ts';
import { readManifest } from '#shared/config/load-bundle.ts';
import { openRouterConfig } from '#shared/config/open-router-config.ts';
import { modelKeys } from '#shared/keys/file-keys.ts';
import { platformRouterOf } from '#shared/keys/platform-router.ts';
import { addressOf } from '#shared/lifecycle/boot.ts';
import { busCheck, cacheCheck, databaseCheck } from '#shared/lifecycle/checks.ts';
import { countdown } from '#shared/lifecycle/countdown.ts';
import { onHangUp } from '#shared/lifecycle/hang-up.ts';
import { runProcess, type Starting } from '#shared/lifecycle/run-process.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { openDatabaseClock } from '#shared/storage/database-clock.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { openRedis } from '#shared/storage/redis/open-redis.ts';
import { openTracing } from '#shared/telemetry/open-tracing.ts';
import { parseConfig } from './config.ts';

/**
 * The process `router`: a router gateway and a router worker on one bus, which passes calls and their answers between them in memory (ADR 116). It starts as a
 * worker does: without PostgreSQL it is alive and not ready.
 */
await runProcess({
  name: 'router',
  parseConfig,
  async start({ config, environment, log, metrics, step, releasers }) {
    const port = await step('opening the port', () => openRouterPort(config, 'PORT'));
    releasers.add('public port', () => port.close());
    log.info({ url: port.url }, 'listening, and not ready yet');
    const file = { path: config.routerConfigPath, environment, use: { secrets: 'all', provider: providerBlock } } as const;
    const { living: routerConfig, reload, stop } = await openRouterConfig(file, { clock: systemClock, log, metrics });
    releasers.add('router configuration', stop);
    releasers.add('reload on SIGHUP', onHangUp(reload));
    const manifest = config.manifestPath === null ? null : await readManifest(config.manifestPath);
    const platform = manifest === null ? null : platformRouterOf(manifest, config.publicBaseUrl, environment);
    const tracing = await openTracing({
      config: config.tracing,
      keepsTraces: config.keepsTraces,
      service: 'router',
      log,
      onDrop: (count) => metrics.add('telemetryDropped', { kind: 'spans' }, count),
    });
    releasers.add('tracing', () => tracing.stop());
    const postgres = `PostgreSQL at ${addressOf(config.databaseUrl)}`;
    const database = await step(`connecting to ${postgres}`, () => openPostgres({ url: config.databaseUrl, applicationName: 'router', log }));
    releasers.add('database', () => database.close());
    await step(`migrating the schema of ${postgres}`, (because) => migrate(database, undefined, { onWait: because }), { limitMs: null });
    const databaseClock = await step(`reading the clock of ${postgres}`, () => openDatabaseClock({ database, log, metrics, clock: systemClock }));
    releasers.add('database clock', () => databaseClock.stop());
    const cache = await openCache(config, { log, step, releasers });
    const bus = await step(`connecting to NATS at ${addressOf(config.nats.servers)}`, () => openNatsBus({ ...config.nats, isLocal: true, log }));
    releasers.add('bus', () => bus.close());
    await step('comparing the command log with that of the running hosts', () => refuseOtherLog({ hosts: hostRows(database), commands: bus.commands }));
    const { drainTimeoutMs, houseSecret, mail, outboundAllowHosts, scriptedWordsPerSecond } = config;
    const shared = { environment, bus, database, cache, log, metrics, tracing, clock: systemClock };
    const fileKeys = routerConfig.derive((loaded) => modelKeys(loaded.config, environment));
    const workerOnly = { fileKeys, actorClock: databaseClock, mail, outboundAllowHosts, platform, scriptedWordsPerSecond, drainTimeoutMs };
    // One budget for both: the gateway stops first, and its calls need the worker.
    const drainLeftMs = countdown(drainTimeoutMs);
    const worker = await step('starting the consumers', () => startRouterWorker({ ...shared, ...workerOnly, config: routerConfig }));
    releasers.add('router worker', () => worker.stop(drainLeftMs()));
    const gateway = await step('starting the HTTP server', () => startRouterGateway({ ...shared, config, routerConfig, houseSecret }, port));
    releasers.add('router gateway', async () => {
      drainLeftMs();
      await gateway.stop();
    });
    // Once started, calls of the file's keys are served without the stores.
    const storeChecks = [databaseCheck(database, { isNeeded: false }), ...(cache === null ? [] : [cacheCheck(cache)])];
    return { url: gateway.url, checks: [busCheck(bus), ...storeChecks] };
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
