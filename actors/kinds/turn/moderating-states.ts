import { postponePreamble, resumePreamble } from './preamble-states.ts';
import { turnSetup } from './turn-setup.ts';
import type { Held, Likely, TurnContext, TurnEvent } from './types.ts';

type Args = { context: TurnContext; event: TurnEvent };

/** Messages of the session are still being checked by moderation. */
export function isHeld({ context }: { context: TurnContext }): boolean {
  return context.held !== undefined;
}

/** The same after the event. */
export function isHeldBy({ event }: Args): boolean {
  return heldBy(event) !== undefined;
}

/** No model call was made for the reply, so no status says that it is being written. */
export function isUntouched({ context }: Args): boolean {
  return context.callNo === 0;
}

/** Nothing is prepared before all messages are checked: no model sees a text that may be flagged. */
export const hold = turnSetup.enqueueActions(({ context, event, enqueue }) => {
  const { likely } = heldBy(event) ?? {};
  enqueue.assign({ ...postponePreamble(enqueue, context.preamble), held: { likely: newerOf(context.held?.likely, likely) } });
});

/** All are checked. */
export const release = turnSetup.enqueueActions(({ context, event, enqueue }) => {
  enqueue.assign({ ...resumePreamble(enqueue, context, event.atMs), held: undefined });
});

/** Of the routines that messages of a turn are most like, that of the newest message. */
export function newerOf(one: Likely | undefined, other: Likely | undefined): Likely | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return one.offset > other.offset ? one : other;
}

function heldBy(event: TurnEvent): Held | undefined {
  return event.type === 'message.joined' || event.type === 'messages.checked' ? event.held : undefined;
}
