import type { SessionActions, SessionEvent, TurnStart } from './types.ts';

type PostArgs = { event: Extract<SessionEvent, { type: 'event.post' }> };

/** @throws TypeError for an event that requests no turn: the machine's guards exclude it */
export function turnFor({ newTurnId: turnId, post: { turn } }: PostArgs['event']): TurnStart {
  if (turn === null) throw new TypeError('an event that requests no turn');
  return { turnId, ...turn };
}

export function begin() {
  return { type: 'beginTurn' as const, params: ({ event }: PostArgs): SessionActions['beginTurn'] => turnFor(event) };
}

/** An event that begins, joins or queues a turn carries the turn's trace, any other its own. */
export function append(trace: SessionActions['fact']['trace']) {
  return {
    type: 'fact' as const,
    params: ({ event: { post } }: PostArgs): SessionActions['fact'] => ({ content: post.content, source: post.source, metadata: post.metadata, trace }),
  };
}
