import { assign } from 'xstate';
import { replyWithEvent, replyWithNothing, runInProgress, turnInProgress } from './reply-actions.ts';
import type { SessionActions, SessionContext, SessionEvent } from './types.ts';

type PatchArgs = { event: Extract<SessionEvent, { type: 'event.patch' }> };
type DeleteArgs = { event: Extract<SessionEvent, { type: 'events.delete' }> };

function refuseChange() {
  return {
    type: 'refuse' as const,
    params: ({ event }: PatchArgs | DeleteArgs): SessionActions['refuse'] => event.refusal ?? { code: 'internal', message: 'the log can not be changed so' },
  };
}

/** @throws TypeError for a refused patch: the guards exclude it */
function changeEvent() {
  return {
    type: 'changeEvent' as const,
    params: ({ event }: PatchArgs): SessionActions['changeEvent'] => {
      if (event.changed === null) throw new TypeError('a patch without an event');
      return { event: event.changed };
    },
  };
}

/** @throws TypeError without events to delete: the guards exclude it */
function cut() {
  return {
    type: 'cut' as const,
    params: ({ event }: DeleteArgs): SessionActions['cut'] => {
      if (event.range === null) throw new TypeError('a deletion of no events');
      return event.range;
    },
  };
}

/** Of a session that exists, whatever it does. */
export function patchEvent() {
  return [{ guard: 'isRefusedChange' as const, actions: refuseChange() }, { actions: [changeEvent(), replyWithEvent()] }] as const;
}

function withoutCut() {
  return [
    { guard: 'isRefusedChange' as const, actions: refuseChange() },
    // Also during a turn: a repeated deletion must not cancel the next one.
    { guard: 'isEmptyCut' as const, actions: replyWithNothing() },
  ] as const;
}

export function deleteEvents() {
  return [...withoutCut(), { actions: [cut(), replyWithNothing()] }] as const;
}

/** What the cancelled turn appends is behind the range, and stays. A turn that waits for its end is dropped if its messages, which have one trace, go. */
export function deleteEventsOfTurn() {
  const cancel = { type: 'notifyTurn' as const, params: { event: { type: 'turn.cancel' } } as SessionActions['notifyTurn'] };
  // First, since the turn may end, and what waits begin, while it is notified.
  const dropWanted = assign<SessionContext, DeleteArgs['event'], undefined, SessionEvent, never>({
    wanted: ({ context: { wanted }, event: { range } }) => (wanted?.offset !== undefined && range !== null && wanted.offset < range.from ? wanted : null),
  });
  return [...withoutCut(), { guard: 'isForced' as const, actions: [dropWanted, cancel, cut(), replyWithNothing()] }, { actions: turnInProgress() }] as const;
}

/** Even a forced deletion does not end a run. */
export function keepEventsOfRun() {
  return [...withoutCut(), { actions: runInProgress() }] as const;
}
