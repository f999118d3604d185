import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { LogCut } from '../store/port/session-store.ts';

/** As the store reads it. @param log without deleted events */
export function cutOf(log: readonly ConversationEvent[], minOffset: number): LogCut | null {
  const first = log.find(({ offset }) => offset >= minOffset);
  if (first === undefined) return null;
  const turns = turnsOf(log);
  const kept = new Set(log.flatMap(({ offset }, index) => (offset < minOffset ? [turns[index]] : [])));
  const split = log.find(({ offset }, index) => offset >= minOffset && kept.has(turns[index]));
  return { offset: first.offset, splitAt: split?.offset ?? null };
}

/** A name of the turn of each event: its trace, and how many turns of that trace have ended before it. */
function turnsOf(log: readonly ConversationEvent[]): string[] {
  const ended = new Map<string, number>();
  return log.map((event, index) => {
    const { trace_id: trace } = event;
    const before = ended.get(trace) ?? 0;
    const next = log.slice(index + 1).find((later) => later.trace_id === trace);
    if (isStatus(event, 'ready') && !isStatus(next, 'acknowledged')) ended.set(trace, before + 1);
    return `${trace} ${before}`;
  });
}

function isStatus(event: ConversationEvent | undefined, status: string): boolean {
  return event?.kind === 'status' && event.source === 'ai_agent' && event.status === status;
}
