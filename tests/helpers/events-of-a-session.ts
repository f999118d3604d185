import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';

/** What {@link wordsOf} says of a turn of the sample agent, which has policies, that went well. */
export const ONE_TURN = 'user_message acknowledged processing typing assistant_message ready';

/** Whether so many turns are over, for `logUntil`. */
export function nthReady(count: number): (event: ConversationEvent) => boolean {
  const seen = new Set<number>();
  return (event) => {
    if (event.kind === 'status' && event.status === 'ready') seen.add(event.offset);
    return seen.size >= count;
  };
}

/** A log in a word per event: its kind, or the status that it reports. */
export function wordsOf(log: readonly ConversationEvent[]): string {
  return log.map((event) => (event.kind === 'status' ? event.status : event.kind)).join(' ');
}
