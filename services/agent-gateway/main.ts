import { refuseOtherLog } from '#actors/runtime/partitions/one-log.ts';
import { hostRows } from '#actors/store/sql/host-rows.ts';
import { CommandTags, withTaggedCommands } from '#bus/command-tags.ts';
import { openNatsBus } from '#bus/nats/nats-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { agentDocuments } from '#shared/config/agent-documents.ts';
import { loadBundle } from '#shared/config/load-bundle.ts';
import { readSecrets } from '#shared/config/secret-bundles.ts';
import { agentDatabase } from '#shared/lifecycle/agent-database.ts';
import { openAgentStores } from '#shared/lifecycle/agent-stores.ts';
import { beside } from '#shared/lifecycle/beside.ts';
import { addressOf } from '#shared/lifecycle/boot.ts';
import { busCheck, cacheCheck, databaseCheck } from '#shared/lifecycle/checks.ts';
import { runProcess } from '#shared/lifecycle/run-process.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { openRedis } from '#shared/storage/redis/open-redis.ts';
import { bundleDeps } from './bundle-deps.ts';
import { parseConfig } from './config.ts';
import { openAgentPort } from './open-agent-port.ts';
import { agentEntryOf, registrarOf, startRegistration } from './registration.ts';
import { startAgentGateway } from './service.ts';

/** The process `agent-gateway`: listens first, then connects to PostgreSQL and NATS, and serves the agent's HTTP API, with or without Redis. */
await runProcess({
  name: 'agent-gateway',
  parseConfig,
  async start({ config, environment: given, log, useManifestLevel, metrics, step, releasers }) {
    const port = await step('opening the port', () => openAgentPort(config, 'PORT'));
    releasers.add('public port', () => port.close());
    const secrets = await readSecrets({ ...config, environment: given });
    const environment = secrets.atStart;
    const openedBus = beside(() => step(`connecting to NATS at ${addressOf(config.nats.servers)}`, () => openNatsBus({ ...config.nats, log })));
    const openedCache = beside(() => step(`connecting to Redis at ${addressOf(config.redisUrl)}`, () => openRedis({ url: config.redisUrl, log })));
    const openDatabase = agentDatabase({ config, environment, log, step, releasers }, (url) => openPostgres({ url, applicationName: 'agent-gateway', log }));
    const documents = agentDocuments({ ...config, environment, database: async () => (await openDatabase()).database });
    // Those of the platform are required where documents are fetched from another deployment, or the agent is registered there.
    const bundle = await loadBundle({
      manifestPath: config.manifestPath,
      documents,
      environment,
      credentials: ['runtime.api_key', 'llms.api_key', 'traces.backend.api_key', 'webhooks.*.secret_env'],
    });
    useManifestLevel(bundle.body.manifest.agent_config.runtime.log_level);
    log.info({ url: port.url }, 'listening, and not ready yet');
    for (const warning of bundle.warnings) log.warn({}, warning);
    // Logged by this service alone: the others load the same files.
    for (const block of bundle.withoutEffect) log.warn({}, `${config.manifestPath}: has no effect yet: ${block}`);
    const { manifest } = bundle.body;
    const entry = agentEntryOf(manifest, config.agentPublicUrl);
    const ofBundle = bundleDeps(bundle, config, environment);

    const starting = { config, environment, log, metrics, step, releasers };
    const { tracing, database } = await openAgentStores(starting, { service: 'agent-gateway', bundle, openDatabase });
    const untagged = await openedBus();
    releasers.add('bus', () => untagged.close());
    const bus = withTaggedCommands(untagged, new CommandTags(config.houseSecret));
    await step('comparing the command log with that of the running hosts', () => refuseOtherLog({ hosts: hostRows(database), commands: bus.commands }));
    const cache = await openedCache();
    releasers.add('cache', () => cache.close());

    const deps = { ...ofBundle, config, secretNow: secrets.now, bus, database, cache, log, metrics, tracing, clock: systemClock };
    const gateway = await step('starting the HTTP server', () => startAgentGateway(deps, port));
    releasers.add('agent gateway', () => gateway.stop());
    if (entry !== null) {
      const registration = startRegistration({
        agent: entry,
        registrar: registrarOf({ manifest, publicBaseUrl: config.publicBaseUrl, environment, database }),
        log,
      });
      releasers.add('registration', () => registration.stop());
    }
    return { url: gateway.url, checks: [busCheck(bus), databaseCheck(database), cacheCheck(cache)] };
  },
});
