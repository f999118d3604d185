import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import type { StagedRow, TurnStore } from '../port/turn-store.ts';

interface AgentStateRow {
  session_id: string;
  off: number;
  state: unknown;
  amendments: unknown[] | null;
}

export function turnRows(database: Queryable): TurnStore {
  return {
    async staged(turnIds) {
      const { rows } = await database.query<StagedRow & { turn_id: string }>(STAGED, [turnIds]);
      const found = new Map<string, StagedRow[]>();
      for (const { turn_id: turnId, seq, body } of rows) {
        const staged = found.get(turnId) ?? [];
        staged.push({ seq, body });
        found.set(turnId, staged);
      }
      return found;
    },

    async toolLists(bundleHashes) {
      const { rows } = await database.query<{ bundle_hash: string; server_id: string; list_hash: string }>(TOOL_LISTS, [bundleHashes]);
      const found = new Map<string, Record<string, string>>();
      for (const { bundle_hash: hash, server_id: server, list_hash: list } of rows) found.set(hash, { ...found.get(hash), [server]: list });
      return found;
    },

    async agentStates(sessionIds) {
      const { rows } = await database.query<AgentStateRow>(AGENT_STATES, [sessionIds]);
      return new Map(
        rows.map(({ session_id: id, off, state, amendments }) => [id, { offset: Number(off), state, ...(amendments !== null && { amendments }) }]),
      );
    },
  };
}

const STAGED: NamedStatement = {
  name: 'load-turn-steps',
  text: 'select turn_id, seq, body from turn_steps where turn_id = any($1::text[]) order by turn_id, seq',
};

const TOOL_LISTS: NamedStatement = {
  name: 'load-tool-lists-of-bundles',
  text: 'select bundle_hash, server_id, list_hash from tool_servers where bundle_hash = any($1::text[]) and list_hash is not null',
};

const AGENT_STATES: NamedStatement = {
  name: 'load-agent-states',
  text: `select ids.session_id, newest.off, newest.state,
      (select json_agg(state order by off) from agent_states where agent_states.session_id = ids.session_id and seq < 0) as amendments
    from unnest($1::text[]) as ids (session_id) cross join lateral (
      select off, state from agent_states where agent_states.session_id = ids.session_id and seq >= 0 order by seq desc limit 1
    ) as newest`,
};
