import { commandCheck } from '#actors/runtime/apply/command-check.ts';
import { readTagsRequiredFrom } from '#actors/store/sql/command-tags.ts';
import { sqlRuntimeStore } from '#actors/store/sql/sql-runtime-store.ts';
import type { Bus } from '#bus/bus.ts';
import { CommandTags, withTaggedCommands } from '#bus/command-tags.ts';
import { startEvaluation } from '#services/actor-host/boot/start-evaluation.ts';
import { startStaleStoreSweep } from '#services/actor-host/boot/sweep-stale-store.ts';
import { startActorHost } from '#services/actor-host/service.ts';
import { openAgentPort } from '#services/agent-gateway/open-agent-port.ts';
import { registrarOf, startRegistration } from '#services/agent-gateway/registration.ts';
import { type AgentGateway, startAgentGateway } from '#services/agent-gateway/service.ts';
import { effectKinds } from '#services/effect-worker/effect-kinds.ts';
import type { OpenKnowledgeBase } from '#services/effect-worker/search/knowledge-bases.ts';
import { startEffectWorker } from '#services/effect-worker/service.ts';
import { openRouterPort } from '#services/router-gateway/open-router-port.ts';
import { startRouterGateway } from '#services/router-gateway/service.ts';
import { startRouterWorker } from '#services/router-worker/service.ts';
import type { Clock } from '#shared/clock.ts';
import type { AgentEntry } from '#shared/config/agent-rows.ts';
import type { Living } from '#shared/config/living.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { LoadedRouterConfig } from '#shared/config/loaded-router-config.ts';
import type { Secrets } from '#shared/config/secret-bundles.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { GuardedPoster } from '#shared/http/guarded-post.ts';
import { checkOutboundUrl } from '#shared/http/outbound-guard.ts';
import type { PublicPort } from '#shared/http-server/open-public-port.ts';
import type { Serving } from '#shared/http-server/serve.ts';
import { modelKeys } from '#shared/keys/file-keys.ts';
import { modelKeyOf } from '#shared/keys/model-key.ts';
import type { PlatformRouter } from '#shared/keys/platform-router.ts';
import { countdown } from '#shared/lifecycle/countdown.ts';
import type { Releasers } from '#shared/lifecycle/releasers.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { Tracing } from '#shared/telemetry/tracing.ts';
import type { StandaloneConfig } from './config.ts';

/** The data folder is locked: a restart is the same host and need not wait for a heartbeat to expire. */
const HOST_ID = 'standalone';

export interface StandaloneDeps {
  config: StandaloneConfig;
  routerConfig: Living<LoadedRouterConfig>;
  environment: Environment;
  agent: { id: string; apiKey: string; bundleHash: string };
  /** What it registers; null: it has no endpoint. */
  entry: AgentEntry | null;
  bundle: Bundle;
  openKnowledgeBase: OpenKnowledgeBase;
  /** Null: the agent's model calls are executed here. */
  platform: PlatformRouter | null;
  /** Of webhooks. */
  secretNow: Secrets['now'];
  houseSecret: string;
  bus: Bus;
  database: Database;
  cache: Cache;
  poster: GuardedPoster;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  tracing: Tracing;
}

export interface StandalonePorts {
  agent: PublicPort;
  router: PublicPort;
}

export interface Standalone {
  routerUrl: string;
  agentGateway: Pick<AgentGateway, 'url' | 'untilReady'>;
}

/** Listens on both public ports: alive, not ready. @throws `service.port_taken`, naming the setting */
export async function openPorts({ host, agentPort, routerPort }: StandaloneConfig, releasers: Releasers): Promise<StandalonePorts> {
  const agent = await openAgentPort({ host, port: agentPort }, 'AGENT_PORT');
  releasers.add('public port of the agent server', () => agent.close());
  const router = await openRouterPort({ host, port: routerPort }, 'ROUTER_PORT');
  releasers.add('public port of the router', () => router.close());
  return { agent, router };
}

/** Starts every service on the same drivers. Releasers run in reverse: gateways, hosts (their turns still have workers), workers. */
export async function startStandalone(deps: StandaloneDeps, ports: StandalonePorts, releasers: Releasers): Promise<Standalone> {
  const {
    config,
    routerConfig,
    environment,
    agent,
    entry,
    bundle,
    openKnowledgeBase,
    platform,
    secretNow,
    houseSecret,
    bus,
    database,
    cache,
    poster,
    clock,
    log,
    metrics,
    tracing,
  } = deps;
  const { drainTimeoutMs, mail, outboundAllowHosts, scriptedWordsPerSecond } = config;
  // One budget for all: they stop in sequence, and the last must have some of it.
  const drainLeftMs = countdown(drainTimeoutMs);

  const worker = await startRouterWorker({
    config: routerConfig,
    environment,
    bus,
    database,
    cache,
    fileKeys: routerConfig.derive((loaded) => modelKeys(loaded.config, environment)),
    log,
    metrics,
    tracing,
    clock,
    mail,
    outboundAllowHosts,
    platform,
    scriptedWordsPerSecond,
    drainTimeoutMs,
  });
  releasers.add('router worker', () => worker.stop(drainLeftMs()));
  const { maxDeliveryAttempts } = config;
  const effectConfig = { kinds: effectKinds.map(({ name }) => name), maxDeliveryAttempts, drainTimeoutMs };
  const effectWorker = await startEffectWorker({
    ...{ config: effectConfig, environment, bus, database, bundle, openKnowledgeBase },
    ...{ poster, clock, log, metrics, tracing },
  });
  releasers.add('effect worker', () => effectWorker.stop(drainLeftMs()));
  // Tagged as in a cluster, so that both behave alike.
  const tags = new CommandTags(houseSecret);
  const taggedBus = withTaggedCommands(bus, tags);
  const check = commandCheck(tags, await readTagsRequiredFrom(database));
  const modelKey = modelKeyOf(bundle, environment);
  const host = await startActorHost({
    config: { ...config, hostId: HOST_ID, modelKey },
    bus: taggedBus,
    store: sqlRuntimeStore(database),
    check,
    clock,
    log,
    metrics,
    tracing,
  });
  releasers.add('actor host', () => host.stop(drainLeftMs()));
  const sweep = startStaleStoreSweep({ config: config.sweep, bus: taggedBus, database, clock, log });
  releasers.add('sweep of the store', () => sweep.stop());
  const evaluation = startEvaluation({ config: { ...config, modelKey }, bundle, bus, database, clock, log });
  releasers.add('evaluation of documents', () => evaluation.stop());

  const agentConfig = {
    host: config.host,
    port: config.agentPort,
    streaming: config.streaming,
    passesBaggage: config.passesBaggage,
    drainTimeoutMs,
    runs: config.runs,
  };
  const rules = { allowHosts: outboundAllowHosts };
  const checkCallbackUrl = (url: string, hostAllowlist: readonly string[] | null) => void checkOutboundUrl(url, rules, hostAllowlist);
  const modelCalls = { modelKey, maxTokens: config.maxTokens, providerOrder: config.providerOrder };
  const agentDeps = {
    config: agentConfig,
    agent,
    modelCalls,
    bundle,
    checkCallbackUrl,
    secretNow,
    bus: taggedBus,
    database,
    cache,
    log,
    metrics,
    tracing,
    clock,
  };
  const agentGateway = await startAgentGateway(agentDeps, ports.agent);
  const gateways: Serving[] = [agentGateway];
  // In parallel, to share the time.
  releasers.add('gateways', async () => {
    drainLeftMs();
    await Promise.all(gateways.map((gateway) => gateway.stop()));
  });
  const gatewayConfig = { host: config.host, port: config.routerPort, drainTimeoutMs, tracing: config.tracing, platformKeys: platformKeysOf(environment) };
  const routerGateway = await startRouterGateway(
    { config: gatewayConfig, routerConfig, environment, houseSecret, bus, database, cache, log, metrics, tracing, clock },
    ports.router,
  );
  gateways.push(routerGateway);
  if (entry !== null) {
    const registrar = registrarOf({ manifest: bundle.body.manifest, publicBaseUrl: config.publicBaseUrl, environment, database });
    const registration = startRegistration({ agent: entry, registrar, log });
    releasers.add('registration', () => registration.stop());
  }
  return { routerUrl: routerGateway.url, agentGateway };
}

function platformKeysOf({ PLATFORM_PUBLIC_KEY: publicKey, PLATFORM_SECRET_KEY: secretKey }: Environment) {
  return publicKey && secretKey ? { publicKey, secretKey } : null;
}
