import { commandCheck } from '#actors/runtime/apply/command-check.ts';
import { readTagsRequiredFrom } from '#actors/store/sql/command-tags.ts';
import { sqlRuntimeStore } from '#actors/store/sql/sql-runtime-store.ts';
import { CommandTags, withTaggedCommands } from '#bus/command-tags.ts';
import { openNatsBus } from '#bus/nats/nats-bus.ts';
import { agentDocuments } from '#shared/config/agent-documents.ts';
import { loadBundle } from '#shared/config/load-bundle.ts';
import { readSecrets } from '#shared/config/secret-bundles.ts';
import { modelKeyOf } from '#shared/keys/model-key.ts';
import { agentDatabase } from '#shared/lifecycle/agent-database.ts';
import { openAgentStores } from '#shared/lifecycle/agent-stores.ts';
import { beside } from '#shared/lifecycle/beside.ts';
import { addressOf } from '#shared/lifecycle/boot.ts';
import { busCheck, databaseCheck } from '#shared/lifecycle/checks.ts';
import { runProcess } from '#shared/lifecycle/run-process.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { startEvaluation } from './boot/start-evaluation.ts';
import { startStaleStoreSweep } from './boot/sweep-stale-store.ts';
import { parseConfig } from './config.ts';
import { startActorHost } from './service.ts';

/** The process `actor-host`: stores the agent's configuration, connects to PostgreSQL and NATS, acquires partitions, sweeps the store. */
await runProcess({
  name: 'actor-host',
  parseConfig,
  async start({ config, environment: given, log, useManifestLevel, metrics, step, releasers }) {
    const { atStart: environment } = await readSecrets({ ...config, environment: given });
    const openedBus = beside(() => step(`connecting to NATS at ${addressOf(config.nats.servers)}`, () => openNatsBus({ ...config.nats, log })));
    const openDatabase = agentDatabase({ config, environment, log, step, releasers }, (url) => openPostgres({ url, applicationName: 'actor-host', log }));
    const documents = agentDocuments({ ...config, environment, database: async () => (await openDatabase()).database });
    // Stored for the turns to come. Of the key of model calls only its hash leaves this process.
    const bundle = await loadBundle({
      manifestPath: config.manifestPath,
      documents,
      environment,
      credentials: ['traces.backend.api_key', 'llms.api_key'],
    });
    const modelKey = modelKeyOf(bundle, environment);
    useManifestLevel(bundle.body.manifest.agent_config.runtime.log_level);

    const starting = { config, environment, log, metrics, step, releasers };
    const { tracing, database, databaseClock } = await openAgentStores(starting, { service: 'actor-host', bundle, openDatabase });
    const tags = new CommandTags(config.houseSecret);
    const check = commandCheck(tags, config.tagsRequiredFromMs ?? (await readTagsRequiredFrom(database)));
    const untagged = await openedBus();
    releasers.add('bus', () => untagged.close());
    const bus = withTaggedCommands(untagged, tags);

    const store = sqlRuntimeStore(database);
    const host = await step('acquiring partitions', () =>
      startActorHost({ config: { ...config, modelKey }, bus, store, check, clock: databaseClock, log, metrics, tracing }),
    );
    releasers.add('actor host', () => host.stop());
    const sweep = startStaleStoreSweep({ config: config.sweep, bus, database, clock: databaseClock, log });
    releasers.add('sweep of the store', () => sweep.stop());
    const evaluation = startEvaluation({ config: { ...config, modelKey }, bundle, bus, database, clock: databaseClock, log });
    releasers.add('evaluation of documents', () => evaluation.stop());
    return { url: null, checks: [busCheck(bus), databaseCheck(database)] };
  },
});
