import type { SessionActions } from './types.ts';

export function replyWithEvent() {
  return { type: 'reply' as const, params: { with: 'posted-event' } as SessionActions['reply'] };
}

export function replyWithSession() {
  return { type: 'reply' as const, params: { with: 'session' } as SessionActions['reply'] };
}

export function replyWithNothing() {
  return { type: 'reply' as const, params: { with: 'nothing' } as SessionActions['reply'] };
}

export function notThere() {
  return { type: 'refuse' as const, params: { code: 'session.not_found', message: 'there is no such session' } as SessionActions['refuse'] };
}

export function turnInProgress() {
  const message = 'a turn is in progress: wait for its end, or set force=true to cancel it';
  return { type: 'refuse' as const, params: { code: 'request.conflict', message } as SessionActions['refuse'] };
}

export function runInProgress() {
  const message = 'a run is in progress: events can be deleted when it has settled';
  return { type: 'refuse' as const, params: { code: 'request.conflict', message } as SessionActions['refuse'] };
}

export function alreadySettled() {
  return { type: 'refuse' as const, params: { code: 'request.conflict', message: 'the run has settled already' } as SessionActions['refuse'] };
}

export function alreadyThere() {
  return { type: 'refuse' as const, params: { code: 'session.exists', message: 'a session with this id exists already' } as SessionActions['refuse'] };
}
