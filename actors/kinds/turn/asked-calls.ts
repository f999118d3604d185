import { type Decision, decide } from '../../engine/decide.ts';
import type { CallRequest } from '../../engine/turn-calls.ts';
import type { TurnRow } from '../../engine/turn-row.ts';

/** By the last of the rows from which a decision was drawn: rows never change, so neither does what was decided from them. They go with the rows. */
const asked = new WeakMap<TurnRow, readonly CallRequest[]>();

/** `decide`, whose calls are found again by `askedCall` while this process has the rows in memory. */
export function decideNext(...input: Parameters<typeof decide>): Decision {
  const decision = decide(...input);
  const last = input[1].at(-1);
  if (decision.type === 'ask' && last !== undefined) asked.set(last, decision.calls);
  return decision;
}

/** The call that a turn awaits under this key; undefined: by its rows it needs none. */
export function askedCall(key: string, ...input: Parameters<typeof decide>): CallRequest | undefined {
  const [, rows] = input;
  for (let at = rows.length - 1; at >= 0; at -= 1) {
    const row = rows[at];
    const found = row && asked.get(row)?.find((call) => call.key === key);
    if (found !== undefined) return found;
    if (row?.kind === 'began') break;
  }
  const decision = decideNext(...input);
  return decision.type === 'ask' ? decision.calls.find((call) => call.key === key) : undefined;
}
