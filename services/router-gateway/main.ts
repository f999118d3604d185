import { openNatsBus } from '#bus/nats/nats-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { loadRouterConfig } from '#shared/config/load-router-config.ts';
import { addressOf } from '#shared/lifecycle/boot.ts';
import { busCheck } from '#shared/lifecycle/checks.ts';
import { runProcess } from '#shared/lifecycle/run-process.ts';
import { parseConfig } from './config.ts';
import { startRouterGateway } from './service.ts';

await runProcess({
  name: 'router-gateway',
  parseConfig,
  async start({ config, environment, log, step, releasers }) {
    const routerConfig = await loadRouterConfig(config.routerConfigPath, environment, { secrets: 'keys' });
    const bus = await step(`connecting to NATS at ${addressOf(config.nats.servers)}`, () => openNatsBus({ ...config.nats, log }));
    releasers.add('bus', () => bus.close());
    const { houseSecret } = config;
    const gateway = await step('opening the port', () => startRouterGateway({ config, routerConfig, environment, houseSecret, bus, log, clock: systemClock }));
    releasers.add('router gateway', () => gateway.stop());
    return { url: gateway.url, checks: [busCheck(bus)] };
  },
});
