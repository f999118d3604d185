import type { AgentState } from '../agent-state.ts';

/** Replies that each have a preamble, before waiting times count. */
const ALWAYS_FIRST = 2;
/** After such a wait in each of the last turns there is one. */
const LONG_WAIT_MS = 5_000;
const TURNS = 2;
/** Newest ones, with which a new one is compared. */
const MAX_PREAMBLES = 16;

type Remembered = Pick<AgentState, 'preambles' | 'replies' | 'waitsMs' | 'endsInPreamble'>;

/** Whether a turn gets a preamble (rule 111). */
export function isPreambleDue({ replies = 0, waitsMs = [], endsInPreamble = false }: Remembered): boolean {
  if (endsInPreamble) return false;
  if (replies < ALWAYS_FIRST) return true;
  return waitsMs.length >= TURNS && waitsMs.every((ms) => ms >= LONG_WAIT_MS);
}

/** What is remembered once a preamble is in the log. */
export function afterPreamble(text: string, { preambles }: Remembered): Remembered {
  return { preambles: [...preambles, text].slice(-MAX_PREAMBLES), endsInPreamble: true };
}

/** @param waitMs from the customer's message to the reply */
export function afterReply(waitMs: number, { preambles, replies = 0, waitsMs = [] }: Remembered): Remembered {
  return { preambles, endsInPreamble: false, replies: Math.min(ALWAYS_FIRST, replies + 1), waitsMs: [...waitsMs, Math.max(0, waitMs)].slice(-TURNS) };
}
