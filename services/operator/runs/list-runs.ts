import type { AgentClient } from '#client/agent-client.ts';
import type { QueryOf, Run } from '#client/api.ts';

const PAGE_RUNS = 100;

/** The newest runs, up to a number. @throws AgentError */
export async function listRuns(client: AgentClient, filter: Pick<QueryOf<'GET', '/runs'>, 'routine_id' | 'status'>, most: number): Promise<Run[]> {
  const found: Run[] = [];
  for (let cursor: string | null = null; ; ) {
    const query = { ...filter, limit: Math.min(PAGE_RUNS, most - found.length), ...(cursor !== null && { cursor }) };
    const page: { items: Run[]; next_cursor: string | null } = await client.request('GET', '/runs', { query });
    found.push(...page.items);
    cursor = page.next_cursor;
    if (cursor === null || found.length >= most) return found;
  }
}
