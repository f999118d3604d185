import { refuseOtherLog } from '#actors/runtime/partitions/one-log.ts';
import { openNatsBus } from '#bus/nats/nats-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { loadRouterConfig } from '#shared/config/load-router-config.ts';
import { addressOf } from '#shared/lifecycle/boot.ts';
import { busCheck, databaseCheck } from '#shared/lifecycle/checks.ts';
import { runProcess } from '#shared/lifecycle/run-process.ts';
import { openDatabaseClock } from '#shared/storage/database-clock.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { openTracing } from '#shared/telemetry/open-tracing.ts';
import { parseConfig } from './config.ts';
import { providerBlock } from './providers/registry.ts';
import { startRouterWorker } from './service.ts';

/** The process `router-worker`: connects to PostgreSQL and NATS, and executes router calls at the providers. */
await runProcess({
  name: 'router-worker',
  parseConfig,
  async start({ config, environment, log, metrics, step, releasers }) {
    const routerConfig = await loadRouterConfig(config.routerConfigPath, environment, { secrets: 'providers', provider: providerBlock });
    const tracing = await openTracing({
      config: config.tracing,
      service: 'router-worker',
      log,
      onDrop: (count) => metrics.add('telemetryDropped', { kind: 'spans' }, count),
    });
    releasers.add('tracing', () => tracing.stop());
    const postgres = `PostgreSQL at ${addressOf(config.databaseUrl)}`;
    const database = await step(`connecting to ${postgres}`, () => openPostgres({ url: config.databaseUrl, applicationName: 'router-worker', log }));
    releasers.add('database', () => database.close());
    await step(`migrating the schema of ${postgres}`, (because) => migrate(database, undefined, { onWait: because }), { limitMs: null });
    const databaseClock = await step(`reading the clock of ${postgres}`, () => openDatabaseClock({ database, log, metrics, clock: systemClock }));
    releasers.add('database clock', () => databaseClock.stop());
    const bus = await step(`connecting to NATS at ${addressOf(config.nats.servers)}`, () => openNatsBus({ ...config.nats, log }));
    releasers.add('bus', () => bus.close());
    await step('comparing the command log with that of the running hosts', () => refuseOtherLog({ database, commands: bus.commands }));
    const { drainTimeoutMs, scriptedWordsPerSecond } = config;
    const deps = {
      config: routerConfig,
      environment,
      bus,
      database,
      log,
      metrics,
      tracing,
      clock: systemClock,
      actorClock: databaseClock,
      scriptedWordsPerSecond,
      drainTimeoutMs,
    };
    const worker = await step('starting the consumers', () => startRouterWorker(deps));
    releasers.add('router worker', () => worker.stop());
    return { url: null, checks: [busCheck(bus), databaseCheck(database)] };
  },
});
