import type { FastifyPluginAsync } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { AgentKey } from '../plugins/agent-auth.ts';
import type { ReadinessGate } from '../readiness.ts';
import type { ToolServerTroubles } from '../tool-server-states.ts';

export const HEALTHY = { status: 'ok', service: 'agent-server' } as const;

interface HealthDeps {
  gate: ReadinessGate;
  key: AgentKey;
  /** Null: there are none. */
  troubles(): Promise<ToolServerTroubles | null>;
}

/**
 * GET /health/live: the process runs. GET /health/ready and /health: it can serve requests, else 503 with the state. No key needed; HEAD too. With the key a
 * ready gateway also names the tool servers that cannot be used: the agent answers without them.
 */
export function health({ gate, key, troubles }: HealthDeps): FastifyPluginAsync {
  const config = { isPublic: true };
  return async (app) => {
    app.get('/health/live', { config, exposeHeadRoute: true }, async () => HEALTHY);
    for (const path of ['/health', '/health/ready']) {
      app.get(path, { config, exposeHeadRoute: true }, async ({ headers }, reply) => {
        const status = await gate.check();
        if (status !== 'ready') return reply.code(503).send({ status });
        const toolServers = key.credentialOf(headers) === null ? null : await troubles();
        return toolServers === null ? HEALTHY : { ...HEALTHY, tool_servers: toolServers };
      });
    }
    app.get('/health/*', { config }, async () => {
      throw new SwitchyardError('request.not_found', 'there is nothing at this address');
    });
  };
}
