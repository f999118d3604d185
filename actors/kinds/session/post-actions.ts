import { assign } from 'xstate';
import { pendingMark } from '../../engine/moderation/moderation-mark.ts';
import { awaitCheck, openCheck } from './message-checks.ts';
import type { SessionActions, SessionContext, SessionEvent, TurnStart } from './types.ts';

type PostArgs = { event: Extract<SessionEvent, { type: 'event.post' }> };

/** @throws TypeError for an event that requests no turn: the machine's guards exclude it */
function turnFor({ newTurnId: turnId, post: { turn } }: PostArgs['event']): TurnStart {
  if (turn === null) throw new TypeError('an event that requests no turn');
  return { turnId, ...turn };
}

export function begin() {
  return { type: 'beginTurn' as const, params: ({ event }: PostArgs): SessionActions['beginTurn'] => turnFor(event) };
}

/** The turn that the event requests waits, or the event is for the turn that waits already. */
export function wait() {
  return assign<SessionContext, PostArgs['event'], undefined, SessionEvent, never>({
    wanted: ({ context, event }) => {
      const { likeliest } = event.post.turn ?? {};
      return { ...(context.wanted ?? { ...turnFor(event), offset: event.offset }), ...(likeliest !== undefined && { likeliest }) };
    },
    lastMessageAtMs: ({ event }) => event.atMs,
  });
}

interface SettledArgs {
  context: SessionContext;
  event: Extract<SessionEvent, { type: 'turn.settled' | 'run.settled' }>;
}

/** Begins the turn that waited for the end of a run, or of a turn. */
export function beginWantedTurn() {
  return [
    { type: 'beginTurn' as const, params: (args: SettledArgs): SessionActions['beginTurn'] => wantedIn(args) },
    { type: 'runTurn' as const, params: (args: SettledArgs): SessionActions['runTurn'] => wantedIn(args) },
    assign<SessionContext, SettledArgs['event'], undefined, SessionEvent, never>({ runId: null, turnId: (args) => wantedIn(args).turnId, wanted: null }),
  ];
}

/** The id has the time at which the turn begins, not that of the event that requested it: the turn before has ended in between. */
function wantedIn({ context: { wanted }, event: { nextTurnId } }: SettledArgs): TurnStart {
  if (wanted === null || nextTurnId === null) throw new TypeError('no turn waits');
  return { ...wanted, turnId: nextTurnId };
}

/** An event that begins, joins or queues a turn carries the turn's trace, any other its own. Of a message that is to be checked the check is opened. */
export function appendChecked(trace: SessionActions['fact']['trace']) {
  return [awaitCheck(), append(trace), openCheck()] as const;
}

function append(trace: SessionActions['fact']['trace']) {
  return {
    type: 'fact' as const,
    params: ({ event: { post, check } }: PostArgs): SessionActions['fact'] => ({
      ...{ content: post.content, source: post.source, trace },
      metadata: check === null ? post.metadata : { ...post.metadata, ...pendingMark(check.mode) },
      ...(check !== null && { id: check.eventId }),
    }),
  };
}
