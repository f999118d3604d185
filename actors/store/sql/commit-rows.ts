import type { CommandReply } from '#bus/messages/session.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { sqlStateOf } from '#shared/storage/transient-error.ts';
import type { CommitStore } from '../port/commit-store.ts';
import { commitOf } from './commit-statement.ts';

const UNIQUE_VIOLATION = '23505';

export function commitRows(database: Queryable): CommitStore {
  return {
    async commit(plan) {
      const { statement, parameters } = commitOf(plan);
      try {
        const { rows } = await database.query<{ owned: number[] }>(statement, parameters);
        return { kind: 'committed', owned: new Set(rows[0]?.owned) };
      } catch (error) {
        if (sqlStateOf(error) === UNIQUE_VIOLATION) return { kind: 'repeated', error };
        throw error;
      }
    },

    async processed(commands) {
      const { rows } = await database.query<{ session_id: string; command_id: string; answer: CommandReply | null }>(PROCESSED, [
        commands.map((command) => command.sessionId),
        commands.map((command) => command.commandId),
      ]);
      return rows.map((row) => ({ sessionId: row.session_id, commandId: row.command_id, reply: row.answer }));
    },
  };
}

const PROCESSED = `
select session_id, command_id, answer from seen
join unnest($1::text[], $2::text[]) as i (session_id, command_id) using (session_id, command_id)`;
