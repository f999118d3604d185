import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { agentEntryOf } from '#services/agent-gateway/registration.ts';
import type { OpenKnowledgeBase } from '#services/effect-worker/search/knowledge-bases.ts';
import { systemClock } from '#shared/clock.ts';
import { storeBundle } from '#shared/config/bundle-store.ts';
import { agentApiKey } from '#shared/config/load-bundle.ts';
import { readSecrets } from '#shared/config/secret-bundles.ts';
import { tracesOf } from '#shared/config/traces-backend.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { checkFailPoint } from '#shared/fail-points.ts';
import { openOutbound } from '#shared/http/outbound.ts';
import { busCheck, databaseCheck } from '#shared/lifecycle/checks.ts';
import { exitOnFault } from '#shared/lifecycle/exit-on-fault.ts';
import { setUpHeap } from '#shared/lifecycle/heap.ts';
import { LoopWatchdog } from '#shared/lifecycle/loop-watchdog.ts';
import { openManagementListener } from '#shared/lifecycle/management-listener.ts';
import { Readiness } from '#shared/lifecycle/readiness.ts';
import { writeReadyFile } from '#shared/lifecycle/ready-file.ts';
import { Releasers } from '#shared/lifecycle/releasers.ts';
import { stopSignal } from '#shared/lifecycle/stop-signal.ts';
import { once } from '#shared/once.ts';
import { lockDataFolder } from '#shared/storage/data-folder.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openPglite } from '#shared/storage/pglite/open-pglite.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { createLog, type Log, type ProcessLog } from '#shared/telemetry/log.ts';
import { type MetricsRegistry, openMetrics } from '#shared/telemetry/open-metrics.ts';
import { openTracing } from '#shared/telemetry/open-tracing.ts';
import { banner } from './banner.ts';
import { locationOfKey, requestedKeys, routerKeyLocations } from './callers-keys.ts';
import { parseConfig, type StandaloneConfig } from './config.ts';
import { envFileOf, misspeltSettings } from './env-file-notes.ts';
import { explainDamage } from './explain-damage.ts';
import { refuseForeignFolder } from './foreign-folder.ts';
import { keepRouter } from './keep-router.ts';
import { loadKeys, withKeys } from './keys.ts';
import { loadConfiguration } from './load-configuration.ts';
import { askCommand, readmePath } from './package-folder.ts';
import { probeToolServers } from './probe-tool-servers.ts';
import { removeRunningFile, writeRunningFile } from './running-file.ts';
import { openPorts, startStandalone } from './service.ts';
import { wrapLines } from './wrap-words.ts';

/** After the drain: closing sockets, the last commits, the database. */
const RELEASE_MARGIN_MS = 10_000;
/** A failed start has to end within 10 s: what an earlier process has accepted goes on after the next one. */
const CLOSE_AFTER_FAILED_BOOT_MS = 2_000;

/** Opens the embedded drivers, starts every service on them, and waits for a stop signal. */
async function main(): Promise<void> {
  setUpHeap();
  checkFailPoint(process.env);
  const config = parseConfig(process.env);
  const metrics = openMetrics();
  const onDrop = () => metrics.add('telemetryDropped', { kind: 'log_lines' });
  const log = createLog({ level: config.logLevel, format: config.logFormat, service: 'standalone', onDrop });
  exitOnFault(log);
  const releasers = new Releasers(log);
  // Registered before anything is opened, so that a stop during the start closes it.
  const stopped = stopSignal();
  let earlySignal: string | null = null;
  void stopped.then((signal) => {
    earlySignal = signal;
  });
  const endIfStopped = () => {
    if (earlySignal !== null) throw new StoppedEarly(earlySignal);
  };
  let isStarted = false;
  try {
    const { readiness, facts } = await run(config, { log, metrics, releasers, endIfStopped }).catch((error: unknown) => {
      throw explainDamage(error, config.dataFolder);
    });
    isStarted = true;
    if (config.readyFile !== null) await writeReadyFile(config.readyFile, facts);
    const signal = await stopped;
    readiness.drain();
    console.log(`\n${signal}: finishing requests in flight …`);
  } catch (error) {
    if (!(error instanceof StoppedEarly)) throw error;
    console.log(`\n${error.signal}: ending the start …`);
  } finally {
    await releasers.releaseAll({ timeoutMs: isStarted || earlySignal !== null ? config.drainTimeoutMs + RELEASE_MARGIN_MS : CLOSE_AFTER_FAILED_BOOT_MS });
  }
  console.log('Stopped.');
}

/** A stop signal came before the start was complete. */
class StoppedEarly extends Error {
  readonly signal: string;

  constructor(signal: string) {
    super(`stopped by ${signal}`);
    this.signal = signal;
  }
}

interface ProcessResources {
  log: ProcessLog;
  metrics: MetricsRegistry;
  releasers: Releasers;
  /** Call it behind each step of the start that takes long. @throws StoppedEarly */
  endIfStopped(): void;
}

/** @returns `facts`: what the ready file gets */
async function run(config: StandaloneConfig, { log, metrics, releasers, endIfStopped }: ProcessResources): Promise<{ readiness: Readiness; facts: object }> {
  await refuseForeignFolder(config.dataFolder);
  const folder = await lockDataFolder(config.dataFolder);
  releasers.add('data folder', () => folder.release());
  const ports = await openPorts(config, releasers);
  const readiness = new Readiness({ log });
  const management = config.management === null ? null : await openManagementListener({ ...config.management, readiness, metrics });
  releasers.add('management listener', () => management?.stop());
  const secrets = await readSecrets({ ...config, environment: process.env });
  const given = secrets.atStart;
  const keys = await loadKeys(config.dataFolder, given, await requestedKeys(config));
  const environment = withKeys(given, keys);
  const isNewFolder = !existsSync(join(config.dataFolder, 'database'));
  const openDatabase = once(async () => {
    const opened = await openPglite({ folder: join(config.dataFolder, 'database'), onPanic: (error) => exitOnPanic(error, log, config.dataFolder) });
    releasers.add('database', () => opened.close());
    endIfStopped();
    await migrate(opened);
    return opened;
  });
  const load = () => loadConfiguration(config, { environment, given, database: openDatabase });
  const { router, bundle, living, platform } = await keepRouter(config.routerConfigPath, load, { environment, log, metrics, releasers });
  endIfStopped();
  const routerConfig = router.config;
  const entry = agentEntryOf(bundle.body.manifest, config.agentPublicUrl);
  if (config.logLevel === null) log.setLevel(bundle.body.manifest.agent_config.runtime.log_level);
  const toolServers = probeToolServers(bundle, { environment, clock: systemClock });

  const tracing = await openTracing({
    config: config.tracing,
    keepsTraces: config.keepsTraces,
    service: 'standalone',
    ...tracesOf(bundle.body, environment),
    log,
    onDrop: (count) => metrics.add('telemetryDropped', { kind: 'spans' }, count),
  });
  releasers.add('tracing', () => tracing.stop());
  const database = await openDatabase();
  endIfStopped();
  await storeBundle(database, bundle);
  const bus = await openMemoryBus({ database, clock: systemClock, log });
  releasers.add('bus', () => bus.close());
  const cache = memoryCache();
  releasers.add('cache', () => cache.close());
  const poster = openOutbound(environment).openPoster({ rules: { allowHosts: config.outboundAllowHosts } });
  releasers.add('guarded poster', () => poster.close());
  endIfStopped();

  const agent = { id: bundle.body.manifest.id, apiKey: agentApiKey(bundle, environment), bundleHash: bundle.hash };
  const deps = {
    config,
    routerConfig: living,
    environment,
    agent,
    entry,
    bundle,
    openKnowledgeBase: (options: Parameters<OpenKnowledgeBase>[0]) => openPostgres({ ...options, applicationName: 'switchyard search', log }),
    platform,
    secretNow: secrets.now,
    houseSecret: keys.houseSecret,
    database,
    bus,
    cache,
    poster,
    clock: systemClock,
    log,
    metrics,
    tracing,
  };
  const { routerUrl, agentGateway } = await startStandalone(deps, ports, releasers);
  endIfStopped();
  // Its check of the database waits behind the statements of the start.
  await agentGateway.untilReady(endIfStopped);
  const agentUrl = agentGateway.url;
  readiness.booted([busCheck(bus), databaseCheck(database)]);
  const routerKeys = routerKeyLocations(routerConfig, given);
  const managementKeys = routerKeyLocations(routerConfig, given, { management: true });
  const agentKey = locationOfKey(bundle.body.manifest.agent_config.runtime.api_key, given);
  const facts = {
    kind: 'start' as const,
    pid: process.pid,
    router: { urls: [routerUrl], key: routerKeys[0] ?? null },
    agent: { urls: [agentUrl], key: agentKey },
  };
  // Only `npm run ask` needs this file.
  await writeRunningFile(config.dataFolder, facts).catch((error: unknown) =>
    log.warn({ err: error }, 'running.json could not be written to the data folder: npm run ask will not find this process'),
  );
  releasers.add('running file', () => removeRunningFile(config.dataFolder));
  const watchdog = new LoopWatchdog({ log, metrics });
  releasers.add('loop watchdog', () => watchdog.stop());
  console.log(
    banner({
      what: 'Switchyard',
      routerUrls: [routerUrl],
      agentUrls: [agentUrl],
      routerConfig,
      routerConfigPath: config.routerConfigPath,
      openAi: config.openAi,
      vendors: config.vendors,
      agentName: bundle.body.manifest.name,
      manifestPath: config.manifestPath,
      dataFolder: config.dataFolder,
      isTemporary: false,
      isNewFolder,
      routerKeys,
      managementKeys,
      agentKey,
      shownKeys: process.stdout.isTTY ? keys.generated : new Map(),
      question: config.isSampleAgent ? 'How long is the warranty?' : 'Hello',
      askCommand: askCommand(),
      readmePath,
      envFile: config.envFile,
      warnings: [...bundle.warnings, ...(await toolServers)],
      withoutEffect: bundle.withoutEffect,
    }),
  );
  const managementUrl = management === null ? {} : { managementUrl: management.url };
  return { readiness, facts: { pid: process.pid, routerUrl, agentUrl, ...managementUrl } };
}

function forTerminal(text: string): string {
  return process.stderr.isTTY ? wrapLines(text) : text;
}

/** The embedded database has panicked: pending queries would never settle. Accepted work is there at the next start. */
function exitOnPanic(error: Error, log: Log, dataFolder: string): never {
  const reason = explainDamage(error, dataFolder);
  log.error({ err: error }, 'the embedded database has panicked: exiting');
  console.error(`Switchyard exits: ${reason instanceof SwitchyardError ? reason.message : `the database in ${dataFolder} has panicked: ${error.message}`}`);
  process.exit(1);
}

try {
  await main();
  process.exit(0);
} catch (error) {
  // A known error's message is for people; any other error is a bug and shows its stack.
  console.error(error instanceof SwitchyardError ? forTerminal(`Switchyard can't start: ${error.message}`) : error);
  for (const note of misspeltSettings(envFileOf(process.env['SWITCHYARD_ENV_LINES']))) console.error(forTerminal(`Note: ${note}`));
  process.exit(1);
}
