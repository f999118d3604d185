import { and, assign, setup } from 'xstate';
import type { EventSource } from '#shared/contracts/agent/conversation-event.ts';
import type { RunError } from '../run/types.ts';
import type { SessionActions, SessionContext, SessionEvent, TurnStart } from './types.ts';

/** Stored with every snapshot; raise it with each change that old snapshots do not fit. */
export const SESSION_MACHINE_VERSION = 2;

/** Bounds the queue, which is part of the snapshot that each command reads and writes. Beyond it a run fails at once rather than after hours. */
const MAX_WAITING_RUNS = 100;

/**
 * One session:
 *
 *   absent ──session.create──▶ idle ──message.post that asks for a turn──▶ responding ──turn.settled──▶ idle
 *   absent ──run.start, ephemeral──▶ running      idle ──run.start──▶ running ──run.settled──▶ idle
 *   any    ──session.delete──▶ deleted            a waiting turn, then waiting runs, begin before idle
 *
 *   responding ──message.post within the coalescing window──▶ responding   joins the turn
 *              ──message.post later──▶ responding                          the turn is cancelled, the next begins
 *              ──run.start──▶ responding                                   the run waits; it fails if the queue is full
 *              ──turn.settled, of an ephemeral session that is over──▶ deleted
 *   running    ──message.post that asks for a turn──▶ running              the turn waits: messages do not cancel a run
 *   any that exists ──session.patch──▶ the same   the record changes; a turn in progress goes on, the new mode applies to later messages
 *
 * At most one turn or run is in progress, so their events never interleave in the log. Pure, like the turn's machine (actors/kinds/turn).
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
    isCurrentRun: ({ context, event }) => (event.type === 'run.settled' || event.type === 'run.expired') && event.runId === context.runId,
    isWaitingRun: ({ context, event }) => event.type === 'run.expired' && context.queue.includes(event.runId),
    isKnownRun: ({ context, event }) => event.type === 'run.start' && (context.runId === event.runId || context.queue.includes(event.runId)),
    isOwnRun: ({ event }) => event.type === 'run.start' && event.ephemeral,
    isGreeted: ({ event }) => event.type === 'session.create' && event.command.allowGreeting && event.greeting !== null,
    mayInterrupt: ({ event }) => event.type === 'session.delete' && !event.unlessBusy,
    fits: ({ event }) => event.type === 'session.patch' && event.problem === null,
    isCrowded: ({ context }) => context.queue.length >= MAX_WAITING_RUNS,
    hasWaitingRun: ({ context }) => context.queue.length > 0,
    hasWantedTurn: ({ context }) => context.wanted !== null,
    isEphemeral: ({ context }) => context.ephemeral,
    isOver: ({ context }) => context.isOver,
  },
  actions: {
    // Only named here; kind.ts executes them.
    open: (_, _params: SessionActions['open']) => {},
    openForRun: (_, _params: SessionActions['openForRun']) => {},
    change: (_, _params: SessionActions['change']) => {},
    fact: (_, _params: SessionActions['fact']) => {},
    beginTurn: (_, _params: SessionActions['beginTurn']) => {},
    runTurn: (_, _params: SessionActions['runTurn']) => {},
    notifyTurn: (_, _params: SessionActions['notifyTurn']) => {},
    beginRun: (_, _params: SessionActions['beginRun']) => {},
    notifyRun: (_, _params: SessionActions['notifyRun']) => {},
    awaitRun: (_, _params: SessionActions['awaitRun']) => {},
    failRuns: (_, _params: SessionActions['failRuns']) => {},
    erase: (_, _params: SessionActions['erase']) => {},
    reply: (_, _params: SessionActions['reply']) => {},
    refuse: (_, _params: SessionActions['refuse']) => {},
  },
}).createMachine({
  id: 'session',
  context: { mode: 'auto', ephemeral: false, isOver: false, turnId: null, lastMessageAtMs: null, runId: null, queue: [], wanted: null },
  initial: 'absent',
  states: {
    absent: {
      on: {
        'session.create': [
          {
            guard: 'isGreeted',
            target: 'idle',
            actions: [assign(({ event }) => ({ mode: event.command.mode })), openRecord(), ...greet(), replyWithSession()],
          },
          { target: 'idle', actions: [assign(({ event }) => ({ mode: event.command.mode })), openRecord(), replyWithSession()] },
        ],
        'message.post': { actions: notThere() },
        'session.patch': { actions: notThere() },
        'session.delete': { actions: notThere() },
        'run.expired': { actions: failUnknownRun() },
        'run.start': [
          {
            guard: 'isOwnRun',
            target: 'running',
            actions: [
              assign({ ephemeral: true, runId: ({ event }) => event.runId }),
              { type: 'openForRun', params: ({ event }) => ({ runId: event.runId }) },
              { type: 'beginRun', params: ({ event }) => ({ runId: event.runId }) },
            ],
          },
          { actions: { type: 'failRuns', params: ({ event }) => ({ runIds: [event.runId], error: missing }) } },
        ],
      },
    },
    idle: {
      on: {
        'session.create': { actions: alreadyThere() },
        'session.patch': [{ guard: 'fits', actions: [setMode(), change(), replyWithSession()] }, { actions: refusePatch() }],
        'session.delete': { target: 'deleted', actions: [erase(), replyWithNothing()] },
        'deliveries.settled': { guard: 'isEphemeral', target: 'deleted', actions: erase() },
        'run.expired': { actions: failUnknownRun() },
        'message.post': [
          {
            guard: 'asksForTurn',
            target: 'responding',
            actions: [
              begin(),
              assign({ turnId: ({ event }) => event.newTurnId, lastMessageAtMs: ({ event }) => event.atMs }),
              append('turn'),
              { type: 'runTurn', params: {} },
              replyWithEvent(),
            ],
          },
          { actions: [append('own'), replyWithEvent()] },
        ],
        'run.start': {
          target: 'running',
          actions: [assign({ runId: ({ event }) => event.runId }), { type: 'beginRun', params: ({ event }) => ({ runId: event.runId }) }],
        },
      },
    },
    responding: {
      on: {
        'session.create': { actions: alreadyThere() },
        'session.patch': [{ guard: 'fits', actions: [setMode(), change(), replyWithSession()] }, { actions: refusePatch() }],
        'session.delete': {
          guard: 'mayInterrupt',
          target: 'deleted',
          actions: [{ type: 'notifyTurn', params: { event: { type: 'turn.cancel' } } }, failWaiting(), erase(), replyWithNothing()],
        },
        'message.post': [
          {
            guard: 'joinsTurn',
            actions: [
              assign({ lastMessageAtMs: ({ event }) => event.atMs }),
              append('turn'),
              { type: 'notifyTurn', params: { event: { type: 'message.joined' } } },
              replyWithEvent(),
            ],
          },
          {
            guard: 'asksForTurn',
            actions: [
              { type: 'notifyTurn', params: { event: { type: 'turn.cancel' } } },
              begin(),
              assign({ turnId: ({ event }) => event.newTurnId, lastMessageAtMs: ({ event }) => event.atMs }),
              append('turn'),
              { type: 'runTurn', params: {} },
              replyWithEvent(),
            ],
          },
          { actions: [append('own'), replyWithEvent()] },
        ],
        'run.start': [{ guard: 'isKnownRun' }, { guard: 'isCrowded', actions: failTooManyWaiting() }, { actions: [enqueue(), awaitRun()] }],
        'run.expired': [{ guard: 'isWaitingRun', actions: [failExpired(), dequeue()] }, { actions: failUnknownRun() }],
        'deliveries.settled': { guard: 'isEphemeral', actions: assign({ isOver: true }) },
        'turn.result': { actions: { type: 'notifyTurn', params: ({ event }) => ({ event: event.event }) } },
        'turn.settled': [
          // Clears `isOver`: `deliveries.settled` comes again after the run and its callback, if any.
          { guard: and(['isCurrentTurn', 'hasWaitingRun']), target: 'running', actions: [assign({ turnId: null, isOver: false }), ...beginWaitingRun()] },
          { guard: and(['isCurrentTurn', 'isOver']), target: 'deleted', actions: erase() },
          { guard: 'isCurrentTurn', target: 'idle', actions: assign({ turnId: null }) },
        ],
      },
    },
    running: {
      on: {
        'session.create': { actions: alreadyThere() },
        'session.patch': [{ guard: 'fits', actions: [setMode(), change(), replyWithSession()] }, { actions: refusePatch() }],
        'session.delete': {
          guard: 'mayInterrupt',
          target: 'deleted',
          actions: [{ type: 'notifyRun', params: { event: { type: 'run.orphaned' } } }, failWaiting(), erase(), replyWithNothing()],
        },
        'message.post': [
          {
            guard: 'asksForTurn',
            actions: [
              assign({ wanted: ({ context, event }) => context.wanted ?? turnFor(event), lastMessageAtMs: ({ event }) => event.atMs }),
              append('wanted'),
              replyWithEvent(),
            ],
          },
          { actions: [append('own'), replyWithEvent()] },
        ],
        'run.start': [{ guard: 'isKnownRun' }, { guard: 'isCrowded', actions: failTooManyWaiting() }, { actions: [enqueue(), awaitRun()] }],
        'run.result': { actions: { type: 'notifyRun', params: ({ event }) => ({ event: event.event }) } },
        'run.expired': [
          { guard: 'isCurrentRun', actions: { type: 'notifyRun', params: ({ event }) => ({ event: event.event }) } },
          { guard: 'isWaitingRun', actions: [failExpired(), dequeue()] },
          { actions: failUnknownRun() },
        ],
        'run.settled': [
          {
            guard: and(['isCurrentRun', 'hasWantedTurn']),
            target: 'responding',
            actions: [
              { type: 'beginTurn', params: ({ context }) => context.wanted as TurnStart },
              assign({ runId: null, turnId: ({ context }) => context.wanted?.turnId ?? null, wanted: null }),
              { type: 'runTurn', params: {} },
            ],
          },
          { guard: and(['isCurrentRun', 'hasWaitingRun']), actions: beginWaitingRun() },
          { guard: 'isCurrentRun', target: 'idle', actions: assign({ runId: null }) },
        ],
      },
    },
    /** Later commands are refused or ignored. */
    deleted: {
      on: {
        'session.create': { actions: alreadyThere() },
        'session.patch': { actions: notThere() },
        'session.delete': { actions: notThere() },
        'message.post': { actions: notThere() },
        'run.expired': { actions: failUnknownRun() },
        'run.start': { actions: { type: 'failRuns', params: ({ event }) => ({ runIds: [event.runId], error: missing }) } },
      },
    },
  },
});

type CreateArgs = { event: Extract<SessionEvent, { type: 'session.create' }> };
type PatchArgs = { event: Extract<SessionEvent, { type: 'session.patch' }> };
type PostArgs = { event: Extract<SessionEvent, { type: 'message.post' }> };
type StartArgs = { context: SessionContext; event: Extract<SessionEvent, { type: 'run.start' }> };
type ExpiredArgs = { context: SessionContext; event: Extract<SessionEvent, { type: 'run.expired' }> };

const missing: RunError = { code: 'session_error', message: 'the session is not there any more', details: {} };
const tooManyWaiting: RunError = { code: 'session_error', message: `${MAX_WAITING_RUNS} runs wait for the session already`, details: {} };
const unknownRun: RunError = { code: 'timeout', message: 'the run is past its time, and its session knows nothing of it', details: {} };
const waitedTooLong: RunError = { code: 'timeout', message: 'the run waited longer for its session than a run may take', details: {} };

function openRecord() {
  return { type: 'open' as const, params: ({ event }: CreateArgs): SessionActions['open'] => ({ command: event.command }) };
}

/** Static text: starts neither a model call nor a turn. */
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

function setMode() {
  return assign<SessionContext, PatchArgs['event'], undefined, SessionEvent, never>({ mode: ({ context, event }) => event.command.mode ?? context.mode });
}

function change() {
  return { type: 'change' as const, params: ({ event }: PatchArgs): SessionActions['change'] => ({ command: event.command }) };
}

function refusePatch() {
  return {
    type: 'refuse' as const,
    params: ({ event }: PatchArgs): SessionActions['refuse'] => ({ code: 'request.invalid', message: event.problem ?? 'the session can not be changed so' }),
  };
}

function turnFor({ newTurnId, command }: PostArgs['event']): TurnStart {
  return { turnId: newTurnId, traceId: command.traceId, bundleHash: command.bundleHash, traceparent: command.traceparent };
}

function begin() {
  return { type: 'beginTurn' as const, params: ({ event }: PostArgs): SessionActions['beginTurn'] => turnFor(event) };
}

/** A message that begins, joins or queues a turn carries the turn's trace, any other its own. */
function append(trace: SessionActions['fact']['trace']) {
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

function enqueue() {
  return assign<SessionContext, StartArgs['event'], undefined, SessionEvent, never>({ queue: ({ context, event }) => [...context.queue, event.runId] });
}

function awaitRun() {
  return { type: 'awaitRun' as const, params: ({ event }: StartArgs): SessionActions['awaitRun'] => ({ runId: event.runId }) };
}

function failTooManyWaiting() {
  return { type: 'failRuns' as const, params: ({ event }: StartArgs): SessionActions['failRuns'] => ({ runIds: [event.runId], error: tooManyWaiting }) };
}

function failExpired() {
  return { type: 'failRuns' as const, params: ({ event }: ExpiredArgs): SessionActions['failRuns'] => ({ runIds: [event.runId], error: waitedTooLong }) };
}

/** An unsettled run of which only the row is left. */
function failUnknownRun() {
  return { type: 'failRuns' as const, params: ({ event }: ExpiredArgs): SessionActions['failRuns'] => ({ runIds: [event.runId], error: unknownRun }) };
}

function dequeue() {
  return assign<SessionContext, ExpiredArgs['event'], undefined, SessionEvent, never>({
    queue: ({ context, event }) => context.queue.filter((runId) => runId !== event.runId),
  });
}

/** The oldest waiting run. */
function beginWaitingRun() {
  return [
    assign<SessionContext, SessionEvent, undefined, SessionEvent, never>({
      runId: ({ context }) => context.queue[0] ?? null,
      queue: ({ context }) => context.queue.slice(1),
    }),
    { type: 'beginRun' as const, params: ({ context }: { context: SessionContext }): SessionActions['beginRun'] => ({ runId: context.runId ?? '' }) },
  ] as const;
}

function failWaiting() {
  return {
    type: 'failRuns' as const,
    params: ({ context }: { context: SessionContext }): SessionActions['failRuns'] => ({ runIds: context.queue, error: missing }),
  };
}

function erase() {
  return { type: 'erase' as const, params: {} };
}

function replyWithEvent() {
  return { type: 'reply' as const, params: { with: 'posted-event' } as SessionActions['reply'] };
}

function replyWithSession() {
  return { type: 'reply' as const, params: { with: 'session' } as SessionActions['reply'] };
}

function replyWithNothing() {
  return { type: 'reply' as const, params: { with: 'nothing' } as SessionActions['reply'] };
}

function notThere() {
  return { type: 'refuse' as const, params: { code: 'session.not_found', message: 'there is no such session' } as SessionActions['refuse'] };
}

function alreadyThere() {
  return { type: 'refuse' as const, params: { code: 'session.exists', message: 'a session with this id exists already' } as SessionActions['refuse'] };
}

/** Human agents write on the agent's side. */
function isAgentSide(source: EventSource): boolean {
  return source === 'human_agent' || source === 'human_agent_on_behalf_of_ai_agent';
}
