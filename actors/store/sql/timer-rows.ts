import type { Queryable } from '#shared/storage/database.ts';
import type { TimerStore } from '../port/timer-store.ts';

export function timerRows(database: Queryable): TimerStore {
  return {
    async of(partitions) {
      const { rows } = await database.query<{ p: number; key: string; due_at: Date; command: string }>(OF_PARTITIONS, [partitions]);
      return rows.map((row) => ({ partition: row.p, key: row.key, dueAtMs: row.due_at.getTime(), command: row.command }));
    },
  };
}

const OF_PARTITIONS = 'select p, key, due_at, command::text as command from timers where p = any($1::int[])';
