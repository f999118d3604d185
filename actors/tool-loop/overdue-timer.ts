import { overdueKeyOf } from './effect-ids.ts';
import type { LoopActions } from './types.ts';

/** A worker reports its own timeout at the deadline; without that report, the item counts as lost. */
const OVERDUE_GRACE_MS = 5_000;

/** The timer that brings a result in place of a lost one. */
export function overdueTimer(callId: string, deadlineAtMs: number, kind: 'tool-call' | 'tool-list'): LoopActions['timer'] {
  return { key: overdueKeyOf(callId), atMs: deadlineAtMs + OVERDUE_GRACE_MS, command: { type: 'effect.overdue', callId, kind } };
}
