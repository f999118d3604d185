import type { AgentClient } from '#client/agent-client.ts';

/** What every section of the agent's console needs. */
export interface WithClient {
  client: AgentClient;
}
