import type { Environment } from './environment.ts';
import type { Load } from './load.ts';

/** The longest times of a load without a turn that ended, and without a client's stream that ended with `[DONE]`, in milliseconds. */
export interface Gaps {
  what: string;
  turns: number;
  streams: number;
}

/** @param fromMs epoch; a gap begins there, and the last one ends now */
export async function longestGaps({ database }: Environment, load: Load, what: string, fromMs: number): Promise<Gaps> {
  const untilMs = Date.now();
  const { rows } = await database.query<{ atMs: number }>(
    `select (extract(epoch from created_at) * 1000)::float8 as "atMs" from events where kind = 'assistant_message' and created_at >= to_timestamp($1 / 1000.0)`,
    [fromMs],
  );
  return { what, turns: longest(rows.map(({ atMs }) => atMs)), streams: longest(load.streamsDoneAtMs) };

  function longest(endsAtMs: readonly number[]): number {
    const within = endsAtMs.filter((atMs) => atMs >= fromMs && atMs <= untilMs).sort((one, other) => one - other);
    return Math.round(Math.max(...[...within, untilMs].map((atMs, index) => atMs - (within[index - 1] ?? fromMs))));
  }
}
