import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { LogCut } from '../store/port/session-store.ts';

/** As the store reads it. @param log without deleted events */
export function cutOf(log: readonly ConversationEvent[], minOffset: number): LogCut | null {
  const first = log.find(({ offset }) => offset >= minOffset);
  if (first === undefined) return null;
  const isFirstOfTrace = log.find((one) => one.trace_id === first.trace_id) === first;
  return { offset: first.offset, isFirstOfTrace };
}
