import { commandCheck } from '#actors/runtime/apply/command-check.ts';
import { readTagsRequiredFrom } from '#actors/store/sql/command-tags.ts';
import { sqlRuntimeStore } from '#actors/store/sql/sql-runtime-store.ts';
import { CommandTags, withTaggedCommands } from '#bus/command-tags.ts';
import { openNatsBus } from '#bus/nats/nats-bus.ts';
import { startEvaluation } from '#services/actor-host/boot/start-evaluation.ts';
import { startStaleStoreSweep } from '#services/actor-host/boot/sweep-stale-store.ts';
import { startActorHost } from '#services/actor-host/service.ts';
import { bundleDeps } from '#services/agent-gateway/bundle-deps.ts';
import { openAgentPort } from '#services/agent-gateway/open-agent-port.ts';
import { agentEntryOf, registrarOf, startRegistration } from '#services/agent-gateway/registration.ts';
import { startAgentGateway } from '#services/agent-gateway/service.ts';
import { systemClock } from '#shared/clock.ts';
import { agentDocuments } from '#shared/config/agent-documents.ts';
import { loadBundle } from '#shared/config/load-bundle.ts';
import { readSecrets } from '#shared/config/secret-bundles.ts';
import { agentDatabase } from '#shared/lifecycle/agent-database.ts';
import { openAgentStores } from '#shared/lifecycle/agent-stores.ts';
import { beside } from '#shared/lifecycle/beside.ts';
import { addressOf } from '#shared/lifecycle/boot.ts';
import { busCheck, cacheCheck, databaseCheck } from '#shared/lifecycle/checks.ts';
import { countdown } from '#shared/lifecycle/countdown.ts';
import { runProcess } from '#shared/lifecycle/run-process.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { openRedis } from '#shared/storage/redis/open-redis.ts';
import { parseConfig } from './config.ts';

/** The process `agent`: an agent gateway and an actor host on one bus, which passes replies and notices between them in memory (ADR 125). */
await runProcess({
  name: 'agent',
  parseConfig,
  async start({ config, environment: given, log, useManifestLevel, metrics, step, releasers }) {
    const port = await step('opening the port', () => openAgentPort(config, 'PORT'));
    releasers.add('public port', () => port.close());
    const secrets = await readSecrets({ ...config, environment: given });
    const environment = secrets.atStart;
    const nats = `NATS at ${addressOf(config.nats.servers)}`;
    const openedBus = beside(() => step(`connecting to ${nats}`, () => openNatsBus({ ...config.nats, isLocal: true, log })));
    const openedCache = beside(() => step(`connecting to Redis at ${addressOf(config.redisUrl)}`, () => openRedis({ url: config.redisUrl, log })));
    const openDatabase = agentDatabase({ config, environment, log, step, releasers }, (url) => openPostgres({ url, applicationName: 'agent', log }));
    const documents = agentDocuments({ ...config, environment, database: async () => (await openDatabase()).database });
    // The gateway's are those of the host, too.
    const bundle = await loadBundle({
      manifestPath: config.manifestPath,
      documents,
      environment,
      credentials: ['runtime.api_key', 'llms.api_key', 'traces.backend.api_key', 'webhooks.*.secret_env'],
    });
    const { manifest } = bundle.body;
    useManifestLevel(manifest.agent_config.runtime.log_level);
    log.info({ url: port.url }, 'listening, and not ready yet');
    for (const warning of bundle.warnings) log.warn({}, warning);
    for (const block of bundle.withoutEffect) log.warn({}, `${config.manifestPath}: has no effect yet: ${block}`);
    const entry = agentEntryOf(manifest, config.agentPublicUrl);
    const ofBundle = bundleDeps(bundle, config, environment);

    const starting = { config, environment, log, metrics, step, releasers };
    const { tracing, database, databaseClock } = await openAgentStores(starting, { service: 'agent', bundle, openDatabase });
    const tags = new CommandTags(config.houseSecret);
    const check = commandCheck(tags, config.tagsRequiredFromMs ?? (await readTagsRequiredFrom(database)));
    const untagged = await openedBus();
    releasers.add('bus', () => untagged.close());
    const bus = withTaggedCommands(untagged, tags);
    const cache = await openedCache();
    releasers.add('cache', () => cache.close());

    // One budget for both: the gateway stops first, and its requests need the host.
    const drainLeftMs = countdown(config.drainTimeoutMs);
    const hostConfig = { ...config, modelKey: ofBundle.modelCalls.modelKey };
    const shared = { bus, log, metrics, tracing };
    const store = sqlRuntimeStore(database);
    const host = await step('acquiring partitions', () => startActorHost({ ...shared, config: hostConfig, store, check, clock: databaseClock }));
    releasers.add('actor host', () => host.stop(drainLeftMs()));
    const sweep = startStaleStoreSweep({ config: config.sweep, bus, database, clock: databaseClock, log });
    releasers.add('sweep of the store', () => sweep.stop());
    const evaluation = startEvaluation({ config: hostConfig, bundle, bus, database, clock: databaseClock, log });
    releasers.add('evaluation of documents', () => evaluation.stop());
    const deps = { ...shared, ...ofBundle, config, secretNow: secrets.now, database, cache, clock: systemClock };
    const gateway = await step('starting the HTTP server', () => startAgentGateway(deps, port));
    releasers.add('agent gateway', async () => {
      drainLeftMs();
      await gateway.stop();
    });
    if (entry !== null) {
      const registrar = registrarOf({ manifest, publicBaseUrl: config.publicBaseUrl, environment, database });
      const registration = startRegistration({ agent: entry, registrar, log });
      releasers.add('registration', () => registration.stop());
    }
    return { url: gateway.url, checks: [busCheck(bus), databaseCheck(database), cacheCheck(cache)] };
  },
});
