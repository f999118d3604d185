import { assign } from 'xstate';
import type { SessionActions, SessionContext, SessionEvent } from './types.ts';

type CreateArgs = { event: Extract<SessionEvent, { type: 'session.create' }> };
type AskedArgs = { event: Extract<SessionEvent, { type: 'mode.asked' }> };
type PatchArgs = { event: Extract<SessionEvent, { type: 'session.patch' }> };

export function openRecord() {
  return { type: 'open' as const, params: ({ event }: CreateArgs): SessionActions['open'] => ({ command: event.command }) };
}

/** Static text: starts neither a model call nor a turn. */
export function greet() {
  return [
    {
      type: 'fact' as const,
      params: ({ event }: CreateArgs): SessionActions['fact'] => ({
        content: { kind: 'assistant_message', text: event.greeting ?? '' },
        source: 'ai_agent',
        metadata: {},
        trace: 'own',
      }),
    },
    {
      type: 'fact' as const,
      params: {
        content: { kind: 'status', status: 'ready', stage: null, error_detail: null },
        source: 'ai_agent',
        metadata: {},
        trace: 'own',
      } as SessionActions['fact'],
    },
  ];
}

/** A turn that waits to begin is dropped: in manual mode none begins, and later messages of auto mode are answered with its messages in the log. */
export function setMode() {
  return assign<SessionContext, PatchArgs['event'], undefined, SessionEvent, never>({
    mode: ({ context, event }) => event.command.mode ?? context.mode,
    wanted: ({ context, event }) => (context.mode === 'manual' || event.command.mode === 'manual' ? null : context.wanted),
  });
}

/** By a tool of a turn that has ended. The turn whose message has cancelled that one begins before. */
export function setAskedMode() {
  return [
    assign<SessionContext, AskedArgs['event'], undefined, SessionEvent, never>({ mode: ({ event }) => event.mode }),
    { type: 'changeMode' as const, params: ({ event }: AskedArgs): SessionActions['changeMode'] => ({ mode: event.mode }) },
  ] as const;
}

export function change() {
  return { type: 'change' as const, params: ({ event }: PatchArgs): SessionActions['change'] => ({ command: event.command }) };
}

export function refusePatch() {
  return {
    type: 'refuse' as const,
    params: ({ event }: PatchArgs): SessionActions['refuse'] => ({ code: 'request.invalid', message: event.problem ?? 'the session can not be changed so' }),
  };
}

export function erase() {
  return { type: 'erase' as const, params: {} };
}
