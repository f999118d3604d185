import { refuseOtherLog } from '#actors/runtime/partitions/one-log.ts';
import { hostRows } from '#actors/store/sql/host-rows.ts';
import { openNatsBus } from '#bus/nats/nats-bus.ts';
import { agentDocuments } from '#shared/config/agent-documents.ts';
import { loadBundle } from '#shared/config/load-bundle.ts';
import { readSecrets } from '#shared/config/secret-bundles.ts';
import { openOutbound } from '#shared/http/outbound.ts';
import { agentDatabase } from '#shared/lifecycle/agent-database.ts';
import { openAgentStores } from '#shared/lifecycle/agent-stores.ts';
import { beside } from '#shared/lifecycle/beside.ts';
import { addressOf } from '#shared/lifecycle/boot.ts';
import { busCheck, databaseCheck } from '#shared/lifecycle/checks.ts';
import { runProcess } from '#shared/lifecycle/run-process.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { parseConfig } from './config.ts';
import type { OpenKnowledgeBase } from './search/knowledge-bases.ts';
import { startEffectWorker } from './service.ts';

/** The process `effect-worker`: connects to PostgreSQL and NATS, and consumes tool calls and callback deliveries. */
await runProcess({
  name: 'effect-worker',
  parseConfig,
  async start({ config, environment: given, log, useManifestLevel, metrics, step, releasers }) {
    const { atStart: environment } = await readSecrets({ ...config, environment: given });
    const openedBus = beside(() => step(`connecting to NATS at ${addressOf(config.nats.servers)}`, () => openNatsBus({ ...config.nats, log })));
    const openDatabase = agentDatabase({ config, environment, log, step, releasers }, (url) => openPostgres({ url, applicationName: 'effect-worker', log }));
    const documents = agentDocuments({ ...config, environment, database: async () => (await openDatabase()).database });
    const credentials = ['runtime.api_key', 'mcps.*.api_key', 'search.api_key', 'search.password', 'traces.backend.api_key'] as const;
    const bundle = await loadBundle({
      manifestPath: config.manifestPath,
      documents,
      environment,
      credentials,
    });
    useManifestLevel(bundle.body.manifest.agent_config.runtime.log_level);
    for (const warning of bundle.warnings) log.warn({}, warning);

    const starting = { config, environment, log, metrics, step, releasers };
    const { tracing, database, databaseClock } = await openAgentStores(starting, { service: 'effect-worker', bundle, openDatabase });
    const bus = await openedBus();
    releasers.add('bus', () => bus.close());
    await step('comparing the command log with that of the running hosts', () => refuseOtherLog({ hosts: hostRows(database), commands: bus.commands }));
    const poster = openOutbound(environment).openPoster({ rules: { allowHosts: config.outboundAllowHosts } });
    releasers.add('guarded poster', () => poster.close());

    const openKnowledgeBase: OpenKnowledgeBase = (options) => openPostgres({ ...options, applicationName: 'effect-worker search', log });
    const deps = { config, environment, bus, database, bundle, openKnowledgeBase, poster, clock: databaseClock, log, metrics, tracing };
    const worker = await step('starting the consumers', () => startEffectWorker(deps));
    releasers.add('effect worker', () => worker.stop());
    return { url: null, checks: [busCheck(bus), databaseCheck(database)] };
  },
});
