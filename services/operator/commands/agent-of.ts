import type { AgentClient } from '#client/agent-client.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { TargetOptions } from '../targets.ts';

/** A client of the agent server that the options name. @throws as `findTarget` */
export async function agentOf(options: TargetOptions, environment: Environment): Promise<AgentClient> {
  const [{ findTarget }, { createAgentClient }] = await Promise.all([import('../targets.ts'), import('#client/agent-client.ts')]);
  const { url, key } = await findTarget('agent', options, environment);
  return createAgentClient({ baseUrl: url, apiKey: key });
}
