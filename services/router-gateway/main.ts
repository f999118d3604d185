import { openNatsBus } from '#bus/nats/nats-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { loadRouterConfig } from '#shared/config/load-router-config.ts';
import { addressOf } from '#shared/lifecycle/boot.ts';
import { busCheck } from '#shared/lifecycle/checks.ts';
import { runProcess } from '#shared/lifecycle/run-process.ts';
import { openTracing } from '#shared/telemetry/open-tracing.ts';
import { parseConfig } from './config.ts';
import { openRouterPort } from './open-router-port.ts';
import { startRouterGateway } from './service.ts';

/** The process `router-gateway`: listens first, then connects to NATS, and serves the router's HTTP API. */
await runProcess({
  name: 'router-gateway',
  parseConfig,
  async start({ config, environment, log, metrics, step, releasers }) {
    const port = await step('opening the port', () => openRouterPort(config, 'PORT'));
    releasers.add('public port', () => port.close());
    log.info({ url: port.url }, 'listening, and not ready yet');
    const routerConfig = await loadRouterConfig(config.routerConfigPath, environment, { secrets: 'keys' });
    const tracing = await openTracing({
      config: config.tracing,
      service: 'router-gateway',
      log,
      onDrop: (count) => metrics.add('telemetryDropped', { kind: 'spans' }, count),
    });
    releasers.add('tracing', () => tracing.stop());
    const bus = await step(`connecting to NATS at ${addressOf(config.nats.servers)}`, () => openNatsBus({ ...config.nats, log }));
    releasers.add('bus', () => bus.close());
    const { houseSecret } = config;
    const gateway = await step('starting the HTTP server', () =>
      startRouterGateway({ config, routerConfig, environment, houseSecret, bus, log, metrics, tracing, clock: systemClock }, port),
    );
    releasers.add('router gateway', () => gateway.stop());
    return { url: gateway.url, checks: [busCheck(bus)] };
  },
});
