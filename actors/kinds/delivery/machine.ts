import { assign, setup } from 'xstate';
import { overdueKeyOf, pauseMs, RETRY_SUFFIX, ROUND_GRACE_MS, ROUND_MS } from './rounds.ts';
import type { DeliveryActions, DeliveryContext, DeliveryEvent } from './types.ts';

const deliverySetup = setup({
  types: { context: {} as DeliveryContext, events: {} as DeliveryEvent },
  guards: {
    /** Another round is open otherwise: a retry would start a second chain of rounds. */
    isCurrentRound: ({ context, event }) => 'roundId' in event && event.roundId === context.roundId,
  },
  actions: {
    // Only named here; kind.ts executes them.
    effect: (_, _params: DeliveryActions['effect']) => {},
    close: (_, _params: DeliveryActions['close']) => {},
    timer: (_, _params: DeliveryActions['timer']) => {},
    disarm: (_, _params: DeliveryActions['disarm']) => {},
    settle: (_, _params: DeliveryActions['settle']) => {},
  },
});

/** The context's round. */
const openRound = deliverySetup.enqueueActions(({ context, event, enqueue }) => {
  const { deliveryId, traceparent, roundId: id } = context;
  if (id === null) return;
  const deadlineAtMs = event.atMs + ROUND_MS;
  enqueue({ type: 'effect', params: { kind: 'delivery', id, deadlineAtMs, deliveryId, traceparent } });
  const command = { type: 'effect.overdue' as const, callId: id, kind: 'delivery' as const };
  enqueue({ type: 'timer', params: { key: overdueKeyOf(id), atMs: deadlineAtMs + ROUND_GRACE_MS, deliveryId, command } });
});

/** The event's round. */
const closeRound = deliverySetup.enqueueActions(({ event, enqueue }) => {
  if (!('roundId' in event)) return;
  const { type, roundId: id } = event;
  enqueue({ type: 'close', params: { id, state: type === 'round.overdue' ? 'superseded' : 'done' } });
  enqueue({ type: 'disarm', params: { key: overdueKeyOf(id) } });
});

const retryLater = deliverySetup.enqueueActions(({ context: { deliveryId }, event, enqueue }) => {
  if (event.type !== 'round.failed') return;
  enqueue({ type: 'timer', params: { key: `${event.roundId}${RETRY_SUFFIX}`, atMs: event.atMs + pauseMs(event), deliveryId, command: 'delivery.due' } });
});

const nextRound = deliverySetup.assign({ roundId: ({ context, event }) => ('nextRoundId' in event ? event.nextRoundId : context.roundId) });

/** A report of the end settles the delivery, whichever round it is of: that round was posted, or found every attempt used up. */
const ends = {
  'round.delivered': {
    target: 'delivered' as const,
    actions: [closeRound, { type: 'settle' as const, params: ({ context: { deliveryId } }: Args) => ({ deliveryId, state: 'delivered' as const }) }] as const,
  },
  'round.exhausted': {
    target: 'dead' as const,
    actions: [
      closeRound,
      {
        type: 'settle' as const,
        params: ({ context: { deliveryId }, event }: Args<'round.exhausted'>) => ({ deliveryId, state: 'dead' as const, reason: event.reason }),
      },
    ] as const,
  },
};

/** What comes after the end. The round of a late report is closed, or its effect would be published for ever. */
const settled = {
  'round.delivered': { actions: closeRound },
  'round.failed': { actions: closeRound },
  'round.exhausted': { actions: closeRound },
  'round.overdue': { actions: closeRound },
};

/**
 * One delivery, posted in rounds of at most one try:
 *
 *   opening ──delivery.opened──▶ posting ──round.failed──▶ waiting ──retry.due──▶ posting (the next round)
 *                                  ├──round.overdue──▶ posting (the round is superseded, another is opened)
 *                                  ├──round.delivered, also in waiting──▶ delivered
 *                                  └──round.exhausted, also in waiting──▶ dead
 *
 * A failure of a round that is no longer current changes nothing; a report of the end counts, whichever round it is of. Tries are counted by the
 * workers, in the delivery's row, and `round.exhausted` reports the last. No final state in XState's sense: a late report still closes its round,
 * and an operator may open a dead delivery again. Its state is not in a snapshot: state-of.ts derives it from the rows. Pure, like the turn's machine.
 */
export const deliveryMachine = deliverySetup.createMachine({
  id: 'delivery',
  context: { deliveryId: '', traceparent: null, roundId: null },
  initial: 'opening',
  states: {
    opening: { on: { 'delivery.opened': { target: 'posting', actions: [nextRound, openRound] } } },
    posting: {
      on: {
        ...ends,
        'round.failed': { guard: 'isCurrentRound', target: 'waiting', actions: [closeRound, retryLater, assign({ roundId: null })] },
        'round.overdue': { guard: 'isCurrentRound', actions: [closeRound, nextRound, openRound] },
      },
    },
    waiting: { on: { ...ends, 'retry.due': { target: 'posting', actions: [nextRound, openRound] } } },
    delivered: { on: settled },
    dead: { on: settled },
  },
});

type Args<Type extends DeliveryEvent['type'] = DeliveryEvent['type']> = { context: DeliveryContext; event: Extract<DeliveryEvent, { type: Type }> };
