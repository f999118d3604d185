import { openPort, type PortConfig } from '#shared/http-server/open-app.ts';
import type { PublicPort } from '#shared/http-server/open-public-port.ts';
import { limits } from './limits.ts';
import { agentRules } from './rules.ts';

/** The agent's public port, before its stores are connected: a key is not known yet, so that requests without one get 503 too. @throws `service.port_taken`, naming `setting` */
export function openAgentPort(config: PortConfig, setting?: string): Promise<PublicPort> {
  return openPort(agentRules, limits, config, setting);
}
