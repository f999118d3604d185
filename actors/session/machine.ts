import { assign, setup } from 'xstate';
import type { EventSource } from '#shared/contracts/agent/conversation-event.ts';
import type { SessionActions, SessionContext, SessionEvent } from './types.ts';

/** Stored with every snapshot. Grows with each change after which an old snapshot no longer fits. */
export const SESSION_MACHINE_VERSION = 1;

/**
 * One session:
 *
 *   absent ──session.create──▶ idle ──message.post that asks for a turn──▶ responding ──turn.settled──▶ idle
 *
 *   responding ──message.post within the coalescing window──▶ responding   the turn takes it in
 *              ──message.post later──▶ responding                          the turn is cancelled, the next begins
 *
 * At most one turn runs at any time, so two turns never stand interleaved in the log. Data, not behaviour: see actors/turn.
 */
export const sessionMachine = setup({
  types: { context: {} as SessionContext, events: {} as SessionEvent },
  guards: {
    asksForTurn: ({ context, event }) => event.type === 'message.post' && event.command.triggersTurn && context.mode === 'auto',
    joinsTurn: ({ context, event }) =>
      event.type === 'message.post' &&
      event.command.triggersTurn &&
      context.mode === 'auto' &&
      context.lastMessageAtMs !== null &&
      event.atMs - context.lastMessageAtMs <= event.coalesceMs,
    isCurrentTurn: ({ context, event }) => event.type === 'turn.settled' && event.turnId === context.turnId,
    isGreeted: ({ event }) => event.type === 'session.create' && event.command.allowGreeting && event.greeting !== null,
  },
  actions: {
    // Named here, carried out by actors/runtime/interpret.ts. Never executed in place.
    open: (_, _params: SessionActions['open']) => {},
    fact: (_, _params: SessionActions['fact']) => {},
    beginTurn: (_, _params: SessionActions['beginTurn']) => {},
    runTurn: (_, _params: SessionActions['runTurn']) => {},
    tellTurn: (_, _params: SessionActions['tellTurn']) => {},
    answer: (_, _params: SessionActions['answer']) => {},
    refuse: (_, _params: SessionActions['refuse']) => {},
  },
}).createMachine({
  id: 'session',
  context: { mode: 'auto', turnId: null, lastMessageAtMs: null },
  initial: 'absent',
  states: {
    absent: {
      on: {
        'session.create': [
          { guard: 'isGreeted', target: 'idle', actions: [assign(({ event }) => ({ mode: event.command.mode })), openRecord(), ...greet(), answerSession()] },
          { target: 'idle', actions: [assign(({ event }) => ({ mode: event.command.mode })), openRecord(), answerSession()] },
        ],
        'message.post': { actions: { type: 'refuse', params: { code: 'session.not_found', message: 'there is no such session' } } },
      },
    },
    idle: {
      on: {
        'session.create': { actions: alreadyThere() },
        'message.post': [
          {
            guard: 'asksForTurn',
            target: 'responding',
            actions: [
              begin(),
              assign({ turnId: ({ event }) => event.newTurnId, lastMessageAtMs: ({ event }) => event.atMs }),
              append('turn'),
              { type: 'runTurn', params: {} },
              answerEvent(),
            ],
          },
          { actions: [append('own'), answerEvent()] },
        ],
      },
    },
    responding: {
      on: {
        'session.create': { actions: alreadyThere() },
        'message.post': [
          {
            guard: 'joinsTurn',
            actions: [
              assign({ lastMessageAtMs: ({ event }) => event.atMs }),
              append('turn'),
              { type: 'tellTurn', params: { event: { type: 'message.joined' } } },
              answerEvent(),
            ],
          },
          {
            guard: 'asksForTurn',
            actions: [
              { type: 'tellTurn', params: { event: { type: 'turn.cancel' } } },
              begin(),
              assign({ turnId: ({ event }) => event.newTurnId, lastMessageAtMs: ({ event }) => event.atMs }),
              append('turn'),
              { type: 'runTurn', params: {} },
              answerEvent(),
            ],
          },
          { actions: [append('own'), answerEvent()] },
        ],
        'turn.result': { actions: { type: 'tellTurn', params: ({ event }) => ({ event: event.event }) } },
        'turn.settled': { guard: 'isCurrentTurn', target: 'idle', actions: assign({ turnId: null }) },
      },
    },
  },
});

type CreateArgs = { event: Extract<SessionEvent, { type: 'session.create' }> };
type PostArgs = { event: Extract<SessionEvent, { type: 'message.post' }> };

function openRecord() {
  return { type: 'open' as const, params: ({ event }: CreateArgs): SessionActions['open'] => ({ command: event.command }) };
}
/** A greeting is static text: no model is asked, and the first turn stays the customer's. */
function greet() {
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
function begin() {
  return {
    type: 'beginTurn' as const,
    params: ({ event }: PostArgs): SessionActions['beginTurn'] => ({
      turnId: event.newTurnId,
      traceId: event.command.traceId,
      bundleHash: event.command.bundleHash,
    }),
  };
}
/** A message that begins or joins a turn carries the turn's trace, any other its own. */
function append(trace: 'turn' | 'own') {
  return {
    type: 'fact' as const,
    params: ({ event: { command } }: PostArgs): SessionActions['fact'] => ({
      content: { kind: isAgentSide(command.source) ? 'assistant_message' : 'user_message', text: command.text },
      source: command.source,
      metadata: command.metadata,
      trace,
    }),
  };
}
function answerEvent() {
  return { type: 'answer' as const, params: { with: 'posted-event' } as SessionActions['answer'] };
}
function answerSession() {
  return { type: 'answer' as const, params: { with: 'session' } as SessionActions['answer'] };
}
function alreadyThere() {
  return { type: 'refuse' as const, params: { code: 'session.exists', message: 'a session with this id exists already' } as SessionActions['refuse'] };
}

/** A human who answers for the agent speaks on the agent's side of the conversation. */
function isAgentSide(source: EventSource): boolean {
  return source === 'human_agent' || source === 'human_agent_on_behalf_of_ai_agent';
}
