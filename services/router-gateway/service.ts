import { randomBytes } from 'node:crypto';
import type { Bus } from '#bus/bus.ts';
import { onKeyChanged } from '#bus/key-notices.ts';
import type { Clock } from '#shared/clock.ts';
import { type GivenRouterConfig, livingRouterConfig } from '#shared/config/loaded-router-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { TracingConfig } from '#shared/config/tracing-settings.ts';
import { Deadlines } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type Outbound, openOutbound } from '#shared/http/outbound.ts';
import type { PublicPort } from '#shared/http-server/open-public-port.ts';
import { type Serving, serve } from '#shared/http-server/serve.ts';
import { openKeyDirectory } from '#shared/keys/open-key-directory.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Database } from '#shared/storage/database.ts';
import { readCollectorTls } from '#shared/telemetry/collector-tls.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Metrics, noMetrics } from '#shared/telemetry/metrics.ts';
import { tracesUrlOf } from '#shared/telemetry/open-exporter.ts';
import type { Tracing } from '#shared/telemetry/tracing.ts';
import { Admission } from './admission.ts';
import { buildApp } from './app.ts';
import { CallSender } from './call-sender.ts';
import { gatewaySetup } from './gateway-setup.ts';
import { type GatewayLimits, gatewayLimits } from './limits.ts';
import { openRouterPort } from './open-router-port.ts';
import type { PlatformKeys } from './plugins/platform-auth.ts';
import { CallReaders } from './relay/call-readers.ts';
import { openTraceForwarder, type TraceForwarder } from './trace-forwarder.ts';

interface RouterGatewayDeps {
  config: {
    host: string;
    /** 0: any free port. */
    port: number;
    drainTimeoutMs: number;
    /** Of clients' traces; absent or without an endpoint: not forwarded. */
    tracing?: TracingConfig;
    /** Null: no platform. */
    platformKeys?: PlatformKeys | null;
  };
  routerConfig: GivenRouterConfig;
  environment: Environment;
  houseSecret: string;
  bus: Bus;
  /** Null: only the keys of the file are known. */
  database: Database | null;
  /** Null: nothing is counted for all gateways together. */
  cache: Cache | null;
  log: Log;
  clock: Clock;
  limits?: GatewayLimits;
  metrics?: Metrics;
  tracing?: Tracing;
}

/**
 * Starts the HTTP front of the model router.
 * @param opened the port to use, closed if the start fails; absent: a port is opened
 * @throws `service.port_taken`, `config.invalid`
 */
export async function startRouterGateway(deps: RouterGatewayDeps, opened?: PublicPort): Promise<Serving> {
  const { bus, config, limits = gatewayLimits, log, metrics = noMetrics } = deps;
  const { host, port } = config;
  const publicPort = opened ?? (await openRouterPort({ host, port }, undefined, limits));
  const admission = new Admission(limits);
  // Starts with a letter: elsewhere a numeric token means a partition. Letters and digits only, so that ids can be parsed.
  const readers = new CallReaders({ bus, log, limits, origin: `g${randomBytes(6).toString('hex')}` });
  const sender = new CallSender({ bus, log, limits });
  const serving = await serve(publicPort, {
    host,
    port,
    backlog: limits.connectionsToAccept,
    build: (serverFactory) => {
      const traceForwarder = forwarderTo(config.tracing, openOutbound(deps.environment), log, metrics);
      const setup = gatewaySetup(livingRouterConfig(deps.routerConfig), deps.environment);
      const fileKeys = setup.derive((one) => one.fileKeys);
      const keys = openKeyDirectory({ fileKeys, database: deps.database, log });
      const parts = {
        setup,
        keys,
        readers,
        sender,
        admission,
        limits,
        metrics,
        traceForwarder,
        serverFactory,
        platformKeys: config.platformKeys ?? null,
      };
      const app = buildApp({ ...deps, ...parts, deadlines: new Deadlines() });
      const notices = onKeyChanged(bus, keys.forget);
      app.addHook('onClose', async () => {
        await notices.stop();
        await traceForwarder?.stop();
      });
      return app;
    },
    drain: () => drainCalls({ admission, readers, limits, log, drainTimeoutMs: config.drainTimeoutMs }),
    cutAfterMs: limits.stopFlushMs,
    release: async () => {
      await Promise.all([readers.stop(), sender.stop()]);
    },
  });
  const unwatch = metrics.watch('queueDepth', async () => [{ labels: { kind: 'router.call' }, value: (await bus.work.depths())['router.call'] }]);
  return {
    url: serving.url,
    stop: () => {
      unwatch();
      return serving.stop();
    },
  };
}

/** Null: there is no collector. */
function forwarderTo(tracing: TracingConfig | undefined, outbound: Outbound, log: Log, metrics: Metrics): TraceForwarder | null {
  const url = tracing === undefined ? null : tracesUrlOf(tracing);
  if (url === null || tracing === undefined) return null;
  if (tracing.otel.protocol === 'grpc') {
    // Forwarded unchanged, so the collector must speak HTTP.
    log.warn({}, 'traces of clients are dropped: OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and they arrive by HTTP');
    return null;
  }
  const tls = readCollectorTls(tracing.otel.tls);
  return openTraceForwarder({ outbound, url, headers: tracing.headers, tls, log, onDrop: () => metrics.add('telemetryDropped', { kind: 'client_batches' }) });
}

interface Running {
  admission: Admission;
  readers: CallReaders;
  limits: GatewayLimits;
  log: Log;
  drainTimeoutMs: number;
}

/** Then ends open calls with an error. */
async function drainCalls({ admission, readers, limits, log, drainTimeoutMs }: Running): Promise<void> {
  admission.close();
  if (await admission.drained(drainTimeoutMs)) return;
  log.warn({ drain_timeout_ms: drainTimeoutMs }, 'the drain has timed out: open calls are ended with an error');
  readers.endAll(new SwitchyardError('service.not_ready', 'this gateway is shutting down', { details: { retryAfterMs: limits.retryAfterMs } }));
  await admission.drained(limits.stopFlushMs);
}
