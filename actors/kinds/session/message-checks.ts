import { assign } from 'xstate';
import { overdueTimer } from '../../tool-loop/overdue-timer.ts';
import type { SessionActions, SessionContext, SessionEvent } from './types.ts';

/** Messages of a session that are being checked. */
const MAX_CHECKS = 32;
/** Of one check: engines of the router have 10 s by default, and a turn waits for it. */
const CHECK_TIMEOUT_MS = 30_000;
const LOST_AFTER_MS = 1_000;

type PostArgs = { event: Extract<SessionEvent, { type: 'event.post' }> };
type SettledArgs = { event: Extract<SessionEvent, { type: 'message.checked' }> };

export function hasTooManyChecks({ context, event }: { context: SessionContext; event: SessionEvent }): boolean {
  return event.type === 'event.post' && event.check !== null && context.checks.length >= MAX_CHECKS;
}

export function isAwaitedCheck({ context, event }: { context: SessionContext; event: SessionEvent }): boolean {
  return event.type === 'message.checked' && context.checks.includes(event.callId);
}

export function tooManyChecks() {
  const message = `${MAX_CHECKS} messages of the session are being checked by moderation: post the next one when they are`;
  return { type: 'refuse' as const, params: { code: 'service.overloaded', message } as SessionActions['refuse'] };
}

/** Before all else that a post does, so that a turn that it begins waits. */
export function awaitCheck() {
  return assign<SessionContext, PostArgs['event'], undefined, SessionEvent, never>({
    checks: ({ context, event }) => (event.check === null ? context.checks : [...context.checks, event.check.callId]),
  });
}

/** Opens the check of a message that was appended, if it has one. */
export function openCheck() {
  return {
    type: 'openCheck' as const,
    params: ({ event: { check, atMs } }: PostArgs): SessionActions['openCheck'] =>
      check === null ? null : { ...check, deadlineAtMs: atMs + CHECK_TIMEOUT_MS },
  };
}

export function lostCheckTimer({ callId, deadlineAtMs }: NonNullable<SessionActions['openCheck']>) {
  return overdueTimer(callId, deadlineAtMs, 'moderation', LOST_AFTER_MS);
}

/** The end of an awaited check: the message is marked, and a turn that waits goes on, or ends. */
export function settleCheck() {
  return [
    assign<SessionContext, SettledArgs['event'], undefined, SessionEvent, never>({
      checks: ({ context, event }) => context.checks.filter((callId) => callId !== event.callId),
      wanted: ({ context: { wanted }, event }) =>
        wanted === null
          ? null
          : { ...wanted, ...(event.likeliest !== undefined && { likeliest: event.likeliest }), ...(isFailed(event) && { isUnmoderated: true }) },
    }),
    { type: 'closeCheck' as const, params: ({ event }: SettledArgs): SessionActions['closeCheck'] => ({ callId: event.callId, marked: event.marked }) },
  ] as const;
}

/** Of a turn in progress: `isHeld` and what it begins with are added when it is sent. */
export function notifyHeldTurn() {
  return {
    type: 'notifyTurn' as const,
    params: ({ event }: SettledArgs): SessionActions['notifyTurn'] => ({
      event: isFailed(event) ? { type: 'moderation.failed' } : { type: 'messages.checked' },
    }),
  };
}

/** A deleted message is in no prompt. */
function isFailed({ verdict, marked }: SettledArgs['event']): boolean {
  return verdict === 'unavailable' && marked !== null;
}
