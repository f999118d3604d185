import { type DeliveryWork, deliveryWork } from '#bus/messages/delivery.ts';
import { EVENT_WORK_VERSION, type EventWork, eventWork } from '#bus/messages/event-delivery.ts';
import type { LeaseTimes } from '#bus/renew-lease.ts';
import type { ItemKind } from '#services/work/item-kind.ts';
import { itemEndReasons } from '#services/work/running-items.ts';
import type { Clock } from '#shared/clock.ts';
import { effectIds } from '../effect-ids.ts';
import { parsedItem } from '../parsed-item.ts';
import { type DeliverDeps, type DeliveryReport, deliver, giveUp } from './deliver.ts';
import { type EventReport, givenUpRound, postEvents } from './post-events.ts';
import { CALLBACK_LIMITS, EVENT_LIMITS, HeldDeliveries, Receivers } from './receivers.ts';

const work = deliveryWork.or(eventWork);

interface Deps extends DeliverDeps {
  concurrency: number;
  lease: LeaseTimes;
  /** Monotonic: for lengths of time, which setting a machine's clock leaves alone. */
  intervalClock: Clock;
}

/** Rounds of callbacks and of event webhooks. */
export function deliveryItems({ concurrency, lease, intervalClock, ...given }: Deps): ItemKind<DeliveryWork | EventWork, DeliveryReport | EventReport> {
  const { clock } = given;
  const held = new HeldDeliveries(concurrency);
  const callbacks = { ...given, receivers: new Receivers(intervalClock, CALLBACK_LIMITS, held) };
  const events = { ...given, intervalClock, receivers: new Receivers(intervalClock, EVENT_LIMITS, held) };
  return {
    name: 'delivery',
    concurrency,
    lease,
    bodyBytes: null,
    newestVersion: EVENT_WORK_VERSION,
    // A replayed dead letter has none.
    needsEffectRow: false,
    // Its owner stores the letter, in the commit that ends the delivery.
    deadLetters: null,
    writesOwnLine: false,
    storesCancelled: false,
    endReasons: itemEndReasons,
    parse: (body) => parsedItem(work, body),
    header: ({ effectId: id, sessionId, republished, traceparent }) => ({ id, sessionId, republished, traceparent }),
    ids: effectIds,
    remainingMs: ({ deadlineAtMs }) => deadlineAtMs - clock.nowMs(),
    // Not `watch`: a counted attempt is always made.
    execute: (item, running) => ('deliveryId' in item ? deliver(item, running, callbacks) : postEvents(item, running, events)),
    // Past its deadline: the timer that the round's commit stored starts another round.
    refuse: async (item, refusal, running) => {
      if (refusal.why !== 'given-up') return null;
      return 'deliveryId' in item ? giveUp(item, refusal.reason, running, callbacks) : givenUpRound(item, refusal.reason);
    },
    commandOf: (_, report) => report,
  };
}
