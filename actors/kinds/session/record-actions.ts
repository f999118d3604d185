import { assign } from 'xstate';
import type { SessionActions, SessionContext, SessionEvent } from './types.ts';

type CreateArgs = { event: Extract<SessionEvent, { type: 'session.create' }> };
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

export function setMode() {
  return assign<SessionContext, PatchArgs['event'], undefined, SessionEvent, never>({ mode: ({ context, event }) => event.command.mode ?? context.mode });
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
