import { overdueKeyOf } from './effect-ids.ts';

/** A worker reports its own timeout at the deadline; without that report, the item counts as lost. */
const OVERDUE_GRACE_MS = 5_000;

/** The timer that brings a result in place of a lost one. */
export function overdueTimer<
  Kind extends 'moderation' | 'rewrite-query' | 'embed' | 'embed-messages' | 'search' | 'tool-call' | 'tool-list' | 'turn-tool-call',
>(callId: string, deadlineAtMs: number, kind: Kind, graceMs = OVERDUE_GRACE_MS) {
  return { key: overdueKeyOf(callId), atMs: deadlineAtMs + graceMs, command: { type: 'effect.overdue' as const, callId, kind } };
}
