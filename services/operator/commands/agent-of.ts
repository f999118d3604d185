import type { AgentClient } from '#client/agent-client.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { TargetOptions } from '../targets.ts';

/**
 * Runs `work` with a client of the agent server that the options name.
 *
 * @param knownIds where ids that exist are found, for one that does not
 * @throws as `findTarget` and `askTarget`
 */
export async function withAgent<T>(
  options: TargetOptions,
  environment: Environment,
  knownIds: ((url: string) => string) | null,
  work: (client: AgentClient) => Promise<T>,
): Promise<T> {
  const [{ findTarget }, { createAgentClient }, { askTarget }] = await Promise.all([
    import('../targets.ts'),
    import('#client/agent-client.ts'),
    import('../ask-target.ts'),
  ]);
  const target = await findTarget('agent', options, environment);
  return askTarget(target, knownIds?.(target.url) ?? null, () => work(createAgentClient({ baseUrl: target.url, apiKey: target.key })));
}

/** The page that lists sessions, routines and runs. */
export const inTheConsole = (url: string) => `those that exist are listed in the console, ${url}/console`;
