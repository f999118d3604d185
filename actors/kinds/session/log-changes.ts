import type { CommandOf } from '#bus/messages/session.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { changedMetadata, isTooLarge } from './metadata.ts';
import type { SessionEvent } from './types.ts';

type EventOf<Type extends SessionEvent['type']> = Extract<SessionEvent, { type: Type }>;

/** @param found the stored event; null: there is none */
export function patchedEvent({ type, setMetadata, unsetMetadata }: CommandOf<'event.patch'>, found: ConversationEvent | null): EventOf<'event.patch'> {
  if (found === null) return { type, changed: null, refusal: { code: 'request.not_found', message: 'there is no such event in the session' } };
  const metadata = changedMetadata(found.metadata, { setMetadata, unsetMetadata });
  if (Object.keys(setMetadata).length > 0 && isTooLarge(metadata))
    return { type, changed: null, refusal: { code: 'request.invalid', message: 'metadata is not valid: an event has at most 1 MiB of it' } };
  return { type, changed: { ...found, metadata }, refusal: null };
}

/**
 * @param cut the first event to delete, and the first one whose trace the deletion would split; null: nothing to delete
 * @param head the end of the log
 */
export function deletedEvents(
  { type, force }: CommandOf<'events.delete'>,
  cut: { offset: number; splitAt: number | null } | null,
  head: number,
): EventOf<'events.delete'> {
  if (cut === null) return { type, range: null, force, refusal: null };
  if (cut.splitAt !== null) {
    const message = `min_offset is not valid: the event at ${cut.splitAt} is not the first of its turn`;
    return { type, range: null, force, refusal: { code: 'request.invalid', message } };
  }
  return { type, range: { from: cut.offset, to: head }, force, refusal: null };
}
