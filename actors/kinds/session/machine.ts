import { and, assign, setup } from 'xstate';
import { deleteEvents, deleteEventsOfTurn, keepEventsOfRun, patchEvent } from './log-actions.ts';
import { hasTooManyChecks, isAwaitedCheck, notifyHeldTurn, settleCheck, tooManyChecks } from './message-checks.ts';
import { appendChecked, begin, beginWantedTurn, wait } from './post-actions.ts';
import { change, erase, greet, openRecord, refusePatch, setAskedMode, setMode } from './record-actions.ts';
import { alreadySettled, alreadyThere, notThere, replyWithEvent, replyWithNothing, replyWithSession } from './reply-actions.ts';
import type { SessionActions, SessionContext, SessionEvent } from './types.ts';
import {
  awaitRun,
  beginWaitingRun,
  dequeue,
  enqueue,
  failCancelled,
  failExpired,
  failTooManyWaiting,
  failUnknownRun,
  failWaiting,
  MAX_WAITING_RUNS,
  missing,
} from './waiting-runs.ts';

/** Stored with every snapshot; raise it with each change that old snapshots do not fit. */
export const SESSION_MACHINE_VERSION = 4;

/**
 * One session:
 *
 *   absent ──session.create──▶ idle ──event.post that asks for a turn──▶ responding ──turn.settled──▶ idle
 *   absent ──run.start, ephemeral──▶ running      idle ──run.start──▶ running ──run.settled──▶ idle
 *   any    ──session.delete──▶ deleted            a waiting turn, then waiting runs, begin before idle
 *
 *   responding ──a message within the coalescing window──▶ responding   joins the turn
 *              ──event.post that asks for a turn──▶ responding          the turn is cancelled, the next begins; if it first waits for a tool that
 *                                                                       can't be called again, the next begins when it has ended
 *              ──run.start──▶ responding                                the run waits; it fails if the queue is full
 *              ──turn.settled, of an ephemeral session that is over──▶ idle, and deleted once its events are posted
 *   running    ──event.post that asks for a turn──▶ running             the turn waits: messages do not cancel a run
 *   any        ──run.cancel──▶ the same   the run fails; one in progress first waits for tools that can not be taken back
 *   any that exists ──event.post of a message to be checked──▶ the same   its check is opened; a turn that it begins or joins waits for all checks
 *   any that exists ──message.checked──▶ the same   the message is marked; the turn that waits goes on after the last, or fails without a result
 *   any that exists ──event.patch──▶ the same     a stored event changes
 *   any that exists ──events.delete──▶ the same   refused during a run, and during a turn unless it may cancel it
 *   any that exists ──session.patch──▶ the same   the record changes; a turn in progress goes on, the new mode applies to later messages; a turn
 *                                                 that waits to begin is dropped by manual mode, and its messages stay in the log
 *
 * At most one turn or run is in progress, so their events never interleave in the log. Pure, like the turn's machine (actors/kinds/turn).
 */
export const sessionMachine = setup({
  types: { context: {} as SessionContext, events: {} as SessionEvent },
  guards: {
    asksForTurn: ({ context, event }) => event.type === 'event.post' && event.post.turn !== null && context.mode === 'auto',
    joinsTurn: ({ context, event }) =>
      event.type === 'event.post' &&
      event.post.turn !== null &&
      event.post.joins &&
      context.mode === 'auto' &&
      context.lastMessageAtMs !== null &&
      event.atMs - context.lastMessageAtMs <= event.coalesceMs,
    waitsForTurn: ({ context, event }) => event.type === 'event.post' && event.post.turn !== null && context.mode === 'auto' && event.turnMustSettle,
    isCurrentTurn: ({ context, event }) => event.type === 'turn.settled' && event.turnId === context.turnId,
    isCurrentRun: ({ context, event }) =>
      (event.type === 'run.settled' || event.type === 'run.expired' || event.type === 'run.cancel') && event.runId === context.runId,
    isWaitingRun: ({ context, event }) => (event.type === 'run.expired' || event.type === 'run.cancel') && context.queue.includes(event.runId),
    isKnownRun: ({ context, event }) => event.type === 'run.start' && (context.runId === event.runId || context.queue.includes(event.runId)),
    isSettledRun: ({ event }) => event.type === 'run.cancel' && event.isSettled,
    isOwnRun: ({ event }) => event.type === 'run.start' && event.ephemeral,
    isGreeted: ({ event }) => event.type === 'session.create' && event.command.allowGreeting && event.greeting !== null,
    mayInterrupt: ({ event }) => event.type === 'session.delete' && !event.unlessBusy,
    fits: ({ event }) => event.type === 'session.patch' && event.problem === null,
    isRefusedChange: ({ event }) => (event.type === 'event.patch' || event.type === 'events.delete') && event.refusal !== null,
    isEmptyCut: ({ event }) => event.type === 'events.delete' && event.range === null,
    isForced: ({ event }) => event.type === 'events.delete' && event.force,
    isCrowded: ({ context }) => context.queue.length >= MAX_WAITING_RUNS,
    hasWaitingRun: ({ context }) => context.queue.length > 0,
    // Not one that a release before has kept in manual mode.
    hasWantedTurn: ({ context }) => context.wanted !== null && context.mode === 'auto',
    hasTooManyChecks,
    isAwaitedCheck,
    isDelivered: ({ context: { ephemeral, deliveries = [] } }) => ephemeral && deliveries.length === 0,
    isOver: ({ context }) => context.isOver,
  },
  actions: {
    // Only named here; kind.ts executes them.
    open: (_, _params: SessionActions['open']) => {},
    openForRun: (_, _params: SessionActions['openForRun']) => {},
    change: (_, _params: SessionActions['change']) => {},
    changeMode: (_, _params: SessionActions['changeMode']) => {},
    changeEvent: (_, _params: SessionActions['changeEvent']) => {},
    cut: (_, _params: SessionActions['cut']) => {},
    openCheck: (_, _params: SessionActions['openCheck']) => {},
    closeCheck: (_, _params: SessionActions['closeCheck']) => {},
    fact: (_, _params: SessionActions['fact']) => {},
    beginTurn: (_, _params: SessionActions['beginTurn']) => {},
    runTurn: (_, _params: SessionActions['runTurn']) => {},
    notifyTurn: (_, _params: SessionActions['notifyTurn']) => {},
    beginRun: (_, _params: SessionActions['beginRun']) => {},
    notifyRun: (_, _params: SessionActions['notifyRun']) => {},
    awaitRun: (_, _params: SessionActions['awaitRun']) => {},
    failRuns: (_, _params: SessionActions['failRuns']) => {},
    endSession: (_, _params: SessionActions['endSession']) => {},
    erase: (_, _params: SessionActions['erase']) => {},
    reply: (_, _params: SessionActions['reply']) => {},
    refuse: (_, _params: SessionActions['refuse']) => {},
  },
}).createMachine({
  id: 'session',
  context: { mode: 'auto', ephemeral: false, isOver: false, turnId: null, lastMessageAtMs: null, runId: null, queue: [], wanted: null, checks: [] },
  initial: 'absent',
  on: {
    'delivery.opened': { actions: assign({ deliveries: ({ context, event }) => [...othersOpen(context, event), event.deliveryId] }) },
    'delivery.settled': { actions: assign({ deliveries: ({ context, event }) => othersOpen(context, event) }) },
  },
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
        'event.post': { actions: notThere() },
        'session.patch': { actions: notThere() },
        'event.patch': { actions: notThere() },
        'events.delete': { actions: notThere() },
        'session.delete': { actions: notThere() },
        'run.expired': { actions: failUnknownRun() },
        'run.cancel': [{ guard: 'isSettledRun', actions: alreadySettled() }, { actions: [failCancelled(), replyWithNothing()] }],
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
        'event.patch': patchEvent(),
        'events.delete': deleteEvents(),
        'session.delete': { target: 'deleted', actions: [erase(), replyWithNothing()] },
        'deliveries.settled': { guard: 'isDelivered', target: 'deleted', actions: erase() },
        'run.expired': { actions: failUnknownRun() },
        'run.cancel': [{ guard: 'isSettledRun', actions: alreadySettled() }, { actions: [failCancelled(), replyWithNothing()] }],
        'event.post': [
          { guard: 'hasTooManyChecks', actions: tooManyChecks() },
          {
            guard: 'asksForTurn',
            target: 'responding',
            actions: [
              begin(),
              assign({ turnId: ({ event }) => event.newTurnId, lastMessageAtMs: ({ event }) => event.atMs }),
              ...appendChecked('turn'),
              { type: 'runTurn', params: {} },
              replyWithEvent(),
            ],
          },
          { actions: [...appendChecked('own'), replyWithEvent()] },
        ],
        'message.checked': { guard: 'isAwaitedCheck', actions: settleCheck() },
        'mode.asked': { actions: setAskedMode() },
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
        'event.patch': patchEvent(),
        'events.delete': deleteEventsOfTurn(),
        'session.delete': {
          guard: 'mayInterrupt',
          target: 'deleted',
          actions: [{ type: 'notifyTurn', params: { event: { type: 'turn.cancel' } } }, failWaiting(), erase(), replyWithNothing()],
        },
        'event.post': [
          { guard: 'hasTooManyChecks', actions: tooManyChecks() },
          {
            guard: 'waitsForTurn',
            actions: [{ type: 'notifyTurn', params: { event: { type: 'turn.cancel', mayWait: true } } }, wait(), ...appendChecked('wanted'), replyWithEvent()],
          },
          {
            guard: 'joinsTurn',
            actions: [
              assign({ lastMessageAtMs: ({ event }) => event.atMs }),
              ...appendChecked('turn'),
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
              ...appendChecked('turn'),
              { type: 'runTurn', params: {} },
              replyWithEvent(),
            ],
          },
          { actions: [...appendChecked('own'), replyWithEvent()] },
        ],
        'message.checked': { guard: 'isAwaitedCheck', actions: [...settleCheck(), notifyHeldTurn()] },
        'run.start': [{ guard: 'isKnownRun' }, { guard: 'isCrowded', actions: failTooManyWaiting() }, { actions: [enqueue(), awaitRun()] }],
        'run.expired': [{ guard: 'isWaitingRun', actions: [failExpired(), dequeue()] }, { actions: failUnknownRun() }],
        'run.cancel': [
          { guard: 'isSettledRun', actions: alreadySettled() },
          { guard: 'isWaitingRun', actions: [failCancelled(), dequeue(), replyWithNothing()] },
          { actions: [failCancelled(), replyWithNothing()] },
        ],
        'deliveries.settled': { guard: 'isDelivered', actions: assign({ isOver: true }) },
        'turn.result': { actions: { type: 'notifyTurn', params: ({ event }) => ({ event: event.event }) } },
        'mode.asked': { actions: setAskedMode() },
        'turn.settled': [
          { guard: and(['isCurrentTurn', 'hasWantedTurn']), actions: beginWantedTurn() },
          // Clears `isOver`: `deliveries.settled` comes again after the run and its callback, if any.
          {
            guard: and(['isCurrentTurn', 'hasWaitingRun']),
            target: 'running',
            actions: [assign({ turnId: null, wanted: null, isOver: false }), ...beginWaitingRun()],
          },
          {
            guard: and(['isCurrentTurn', 'isOver']),
            target: 'idle',
            actions: [assign({ turnId: null, wanted: null, isOver: false }), { type: 'endSession', params: {} }],
          },
          { guard: 'isCurrentTurn', target: 'idle', actions: assign({ turnId: null, wanted: null }) },
        ],
      },
    },
    running: {
      on: {
        'session.create': { actions: alreadyThere() },
        'session.patch': [{ guard: 'fits', actions: [setMode(), change(), replyWithSession()] }, { actions: refusePatch() }],
        'event.patch': patchEvent(),
        'events.delete': keepEventsOfRun(),
        'session.delete': {
          guard: 'mayInterrupt',
          target: 'deleted',
          actions: [{ type: 'notifyRun', params: { event: { type: 'run.orphaned' } } }, failWaiting(), erase(), replyWithNothing()],
        },
        'event.post': [
          { guard: 'hasTooManyChecks', actions: tooManyChecks() },
          {
            guard: 'asksForTurn',
            actions: [wait(), ...appendChecked('wanted'), replyWithEvent()],
          },
          { actions: [...appendChecked('own'), replyWithEvent()] },
        ],
        'message.checked': { guard: 'isAwaitedCheck', actions: settleCheck() },
        'run.start': [{ guard: 'isKnownRun' }, { guard: 'isCrowded', actions: failTooManyWaiting() }, { actions: [enqueue(), awaitRun()] }],
        'mode.asked': { actions: setAskedMode() },
        'run.result': { actions: { type: 'notifyRun', params: ({ event }) => ({ event: event.event }) } },
        'run.expired': [
          { guard: 'isCurrentRun', actions: { type: 'notifyRun', params: ({ event }) => ({ event: event.event }) } },
          { guard: 'isWaitingRun', actions: [failExpired(), dequeue()] },
          { actions: failUnknownRun() },
        ],
        'run.cancel': [
          { guard: 'isSettledRun', actions: alreadySettled() },
          { guard: 'isCurrentRun', actions: [{ type: 'notifyRun', params: ({ event }) => ({ event: event.event }) }, replyWithNothing()] },
          { guard: 'isWaitingRun', actions: [failCancelled(), dequeue(), replyWithNothing()] },
          { actions: [failCancelled(), replyWithNothing()] },
        ],
        'run.settled': [
          {
            guard: and(['isCurrentRun', 'hasWantedTurn']),
            target: 'responding',
            actions: beginWantedTurn(),
          },
          { guard: and(['isCurrentRun', 'hasWaitingRun']), actions: [assign({ wanted: null }), ...beginWaitingRun()] },
          { guard: 'isCurrentRun', target: 'idle', actions: assign({ runId: null, wanted: null }) },
        ],
      },
    },
    /** Later commands are refused or ignored. */
    deleted: {
      on: {
        'session.create': { actions: alreadyThere() },
        'session.patch': { actions: notThere() },
        'event.patch': { actions: notThere() },
        'events.delete': { actions: notThere() },
        'session.delete': { actions: notThere() },
        'event.post': { actions: notThere() },
        'run.expired': { actions: failUnknownRun() },
        'run.cancel': [{ guard: 'isSettledRun', actions: alreadySettled() }, { actions: [failCancelled(), replyWithNothing()] }],
        'run.start': { actions: { type: 'failRuns', params: ({ event }) => ({ runIds: [event.runId], error: missing }) } },
      },
    },
  },
});

/** Deliveries that are open beside the event's. */
function othersOpen({ deliveries = [] }: SessionContext, { deliveryId }: { deliveryId: string }): string[] {
  return deliveries.filter((id) => id !== deliveryId);
}
