import { openPort, type PortConfig } from '#shared/http-server/open-app.ts';
import type { PublicPort } from '#shared/http-server/open-public-port.ts';
import { type GatewayLimits, gatewayLimits } from './limits.ts';
import { routerRules } from './rules.ts';

/** The router's public port, before its bus is connected. @throws `service.port_taken`, naming `setting` */
export function openRouterPort(config: PortConfig, setting?: string, limits: GatewayLimits = gatewayLimits): Promise<PublicPort> {
  return openPort(routerRules, limits, config, setting);
}
