import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { LogCut } from '../store/port/session-store.ts';

/** As the store reads it. @param log without deleted events */
export function cutOf(log: readonly ConversationEvent[], minOffset: number): LogCut | null {
  const first = log.find(({ offset }) => offset >= minOffset);
  if (first === undefined) return null;
  const kept = new Set(log.filter(({ offset }) => offset < minOffset).map((event) => event.trace_id));
  const split = log.find((event) => event.offset >= minOffset && kept.has(event.trace_id));
  return { offset: first.offset, splitAt: split?.offset ?? null };
}
