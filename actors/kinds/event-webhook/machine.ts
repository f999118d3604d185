import { and, setup } from 'xstate';
import { overdueKeyOf, pauseMs, RETRY_SUFFIX, ROUND_GRACE_MS, ROUND_MS } from '../delivery/rounds.ts';
import { addressOf, isBehind } from './address.ts';
import type { EventWebhookActions, EventWebhookContext, EventWebhookEvent, EventWebhookInput } from './types.ts';

/** Stored with every snapshot; raise it with each change that old snapshots do not fit. */
export const EVENT_WEBHOOK_MACHINE_VERSION = 1;

const webhookSetup = setup({
  types: { context: {} as EventWebhookContext, events: {} as EventWebhookEvent, input: {} as EventWebhookInput },
  guards: {
    isCurrent: ({ context, event }) => 'roundId' in event && event.roundId === context.roundId,
    isMoved: ({ context }) => context.isMoved,
    isLastAttempt: ({ context, event }) => event.type === 'round.failed' && attemptsOf(context, event) + 1 >= event.maxAttempts,
    hasMore: ({ context, event }) => 'scene' in event && isBehind(context, event.scene),
    isLast: ({ context }) => context.isLast,
  },
  actions: {
    // Only named here; kind.ts executes them.
    effect: (_, _params: EventWebhookActions['effect']) => {},
    close: (_, _params: EventWebhookActions['close']) => {},
    timer: (_, _params: EventWebhookActions['timer']) => {},
    disarm: (_, _params: EventWebhookActions['disarm']) => {},
    giveUp: (_, _params: EventWebhookActions['giveUp']) => {},
    endSession: (_, _params: EventWebhookActions['endSession']) => {},
  },
});

const openRound = webhookSetup.enqueueActions(({ context, event, enqueue }) => {
  if (!('scene' in event)) return;
  const { atMs, head: toOffset, deployment, nextRoundId: id } = event.scene;
  const { cursor: fromOffset, attempts, waitingSinceMs } = context;
  const address = addressOf(context, deployment);
  if (address === null) return;
  const deadlineAtMs = atMs + ROUND_MS;
  enqueue.assign({ roundId: id });
  enqueue({ type: 'effect', params: { kind: 'event-delivery', id, deadlineAtMs, ...address, fromOffset, toOffset, attempts, waitingSinceMs } });
  const command = { type: 'effect.overdue' as const, callId: id, kind: 'event-delivery' as const };
  enqueue({ type: 'timer', params: { key: overdueKeyOf(id), atMs: deadlineAtMs + ROUND_GRACE_MS, command } });
});

/** The context's round. */
const closeRound = webhookSetup.enqueueActions(({ context: { roundId: id }, event, enqueue }) => {
  if (id === null) return;
  const isReported = event.type === 'round.posted' || event.type === 'round.failed' || event.type === 'round.postponed';
  enqueue({ type: 'close', params: { id, state: isReported ? 'done' : 'superseded' } });
  enqueue({ type: 'disarm', params: { key: overdueKeyOf(id) } });
});

const retryLater = webhookSetup.enqueueActions(({ context: { roundId, attempts }, event, enqueue }) => {
  if (roundId === null || (event.type !== 'round.failed' && event.type !== 'round.postponed')) return;
  const { retryAfterMs, chance, scene } = event;
  const waitMs = event.type === 'round.failed' ? pauseMs({ attempts, retryAfterMs, chance }) : (retryAfterMs ?? 0);
  enqueue({ type: 'timer', params: { key: retryKeyOf(roundId), atMs: scene.atMs + waitMs, command: { type: 'event-webhook.due', roundId } } });
});

const disarmRetry = webhookSetup.enqueueActions(({ context: { roundId }, enqueue }) => {
  if (roundId !== null) enqueue({ type: 'disarm', params: { key: retryKeyOf(roundId) } });
});

/** To what the round's report says; never back, and never past the log. */
const moveCursor = webhookSetup.assign(({ context, event }) => {
  if (!('nextOffset' in event)) return {};
  const cursor = reachedOf(context, event);
  const waitingSinceMs = event.type === 'round.posted' ? null : cursor === context.cursor ? (context.waitingSinceMs ?? event.scene.atMs) : event.scene.atMs;
  return { cursor, waitingSinceMs, attempts: attemptsOf(context, event) + (event.type === 'round.failed' ? 1 : 0) };
});

const giveUp = webhookSetup.enqueueActions(({ context, event, enqueue }) => {
  if (event.type !== 'round.failed') return;
  enqueue({ type: 'giveUp', params: { offset: context.cursor, reason: event.reason } });
  enqueue.assign({ cursor: context.cursor + 1, attempts: 0, waitingSinceMs: null });
});

const set = webhookSetup.assign(({ context, event }) => {
  if (event.type !== 'webhook.set') return {};
  const { url, fromOffset, bundleHash } = event;
  return { url, isOn: url !== null, cursor: fromOffset ?? context.cursor, attempts: 0, waitingSinceMs: null, bundleHash };
});

const setMoved = webhookSetup.assign({ isMoved: true });
const setUnmoved = webhookSetup.assign({ isMoved: false });
const setLast = webhookSetup.assign({ isLast: true });
const useBundle = webhookSetup.assign(({ event }) => (event.type === 'events.appended' && event.bundleHash !== null ? { bundleHash: event.bundleHash } : {}));

/** Kinds that are not wanted open no round. */
const leaveOut = webhookSetup.assign(({ context, event }) => {
  if (event.type !== 'events.appended' || context.cursor !== event.first) return {};
  const kinds = addressOf(context, event.scene.deployment)?.kinds ?? null;
  return kinds === null || event.kinds.some((kind) => kinds.includes(kind)) ? {} : { cursor: event.scene.head };
});

/** During a round its address and cursor are not used any more: the next round has them, so that at most one is open. */
const afterMove = { guard: and(['isCurrent', 'isMoved']), target: 'next' as const, actions: [closeRound, setUnmoved] as const };

/**
 * The event webhook of one session, posted in rounds of many events, each event by a request of its own, in order:
 *
 *   idle ──events.appended──▶ posting ──round.posted──▶ posting (the rest) or idle
 *                               ├──round.failed──▶ waiting ──retry.due──▶ posting
 *                               ├──round.failed, the last attempt──▶ posting (from the event behind it, which is a dead letter)
 *                               ├──round.postponed──▶ waiting
 *                               └──round.overdue──▶ posting (the round is superseded)
 *   any  ──webhook.set──▶ posting from the given offset; while a round is open, after its report
 *
 * The cursor is stored with the session by the commit that applies a report, so that an owner that lost its partition moves nothing. `next` is never stored.
 * Pure, like the turn's machine.
 */
export const eventWebhookMachine = webhookSetup.createMachine({
  id: 'eventWebhook',
  context: ({ input }) => ({ ...input, attempts: 0, waitingSinceMs: null, roundId: null, isMoved: false, isLast: false }),
  initial: 'idle',
  on: { 'session.ended': { actions: setLast } },
  states: {
    idle: {
      on: {
        'events.appended': { target: 'next', actions: [useBundle, leaveOut] },
        'webhook.set': { target: 'next', actions: set },
      },
    },
    posting: {
      on: {
        'events.appended': { actions: useBundle },
        'webhook.set': { actions: [set, setMoved] },
        'session.erased': { target: 'idle', actions: closeRound },
        'round.posted': [afterMove, { guard: 'isCurrent', target: 'next', actions: [closeRound, moveCursor] }],
        'round.failed': [
          afterMove,
          { guard: and(['isCurrent', 'isLastAttempt']), target: 'next', actions: [closeRound, moveCursor, giveUp] },
          { guard: 'isCurrent', target: 'waiting', actions: [closeRound, moveCursor, retryLater] },
        ],
        'round.postponed': [afterMove, { guard: 'isCurrent', target: 'waiting', actions: [closeRound, moveCursor, retryLater] }],
        'round.overdue': [afterMove, { guard: 'isCurrent', target: 'next', actions: closeRound }],
      },
    },
    waiting: {
      on: {
        'events.appended': { actions: useBundle },
        'webhook.set': { target: 'next', actions: [disarmRetry, set] },
        'session.erased': { target: 'idle', actions: disarmRetry },
        'retry.due': { guard: 'isCurrent', target: 'next' },
      },
    },
    next: {
      always: [
        { guard: 'hasMore', target: 'posting', actions: openRound },
        { guard: 'isLast', target: 'idle', actions: [webhookSetup.assign({ isLast: false }), { type: 'endSession', params: {} }] },
        { target: 'idle' },
      ],
    },
  },
});

type Reported = Extract<EventWebhookEvent, { nextOffset: number }>;

function reachedOf({ cursor }: EventWebhookContext, { nextOffset, scene }: Reported): number {
  return Math.min(Math.max(nextOffset, cursor), scene.head);
}

/** Earlier attempts for the event that the report is about. */
function attemptsOf(context: EventWebhookContext, event: Reported): number {
  return reachedOf(context, event) === context.cursor ? context.attempts : 0;
}

function retryKeyOf(roundId: string): string {
  return `${roundId}${RETRY_SUFFIX}`;
}
