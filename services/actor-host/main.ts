import { openNatsBus } from '#bus/nats/nats-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { storeBundle } from '#shared/config/bundle-store.ts';
import { loadBundle } from '#shared/config/load-bundle.ts';
import { addressOf } from '#shared/lifecycle/boot.ts';
import { busCheck, databaseCheck } from '#shared/lifecycle/checks.ts';
import { runProcess } from '#shared/lifecycle/run-process.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { parseConfig } from './config.ts';
import { startActorHost } from './service.ts';

await runProcess({
  name: 'actor-host',
  parseConfig,
  async start({ config, environment, log, step, releasers }) {
    // Turns run on the bundle that their commands name; this one is stored for those that come first. It uses none of its credentials.
    const bundle = await loadBundle({ manifestPath: config.manifestPath, documentsPath: config.documentsPath, environment, credentials: [] });

    const postgres = `PostgreSQL at ${addressOf(config.databaseUrl)}`;
    const database = await step(`connecting to ${postgres}`, () => openPostgres({ url: config.databaseUrl, applicationName: 'actor-host', log }));
    releasers.add('database', () => database.close());
    await step(`bringing the schema of ${postgres} up to date`, () => migrate(database));
    await step(`storing the agent's configuration in ${postgres}`, () => storeBundle(database, bundle));
    const bus = await step(`connecting to NATS at ${addressOf(config.nats.servers)}`, () => openNatsBus({ ...config.nats, log }));
    releasers.add('bus', () => bus.close());

    const host = await step('taking partitions', () => startActorHost({ config, bus, database, clock: systemClock, log }));
    releasers.add('actor host', () => host.stop());
    return { url: null, checks: [busCheck(bus), databaseCheck(database)] };
  },
});
