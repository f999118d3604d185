import { type MsgHdrs, TimeoutError } from '@nats-io/transport-node';
import type { WorkKind } from '../../../bus/bus.ts';
import type { NatsLink } from '../../../bus/nats/connection/link.ts';
import type { Requests } from '../../../bus/nats/connection/requests.ts';
import { Retries } from '../../../bus/nats/connection/retries.ts';
import { storedPublisher } from '../../../bus/nats/connection/stored-publish.ts';
import { fromWireId, MESSAGE_ID_HEADER } from '../../../bus/nats/connection/wire-id.ts';
import { deliveryHeaders, earlierDeliveries } from '../../../bus/nats/work/earlier-deliveries.ts';
import { askerOf } from '../model-bus.ts';
import type { RouterBusOptions } from './router-bus.ts';

/** As the driver's: of a publish with its repeats. */
const BUDGET_MS = 8_000;
/** The server's reply while its stream has no leader. */
const NO_LEADER = { error: { code: 503, err_code: 10_008, description: 'JetStream system temporarily unavailable' } };

/** In the labels of publishes that are in flight. */
export const PUBLISHES = 'publishes';

export type Publish = (kind: WorkKind, messageId: string, body: string, earlier?: number) => Promise<{ duplicate: boolean }>;

/** A process's publishes to the queue, with the repeats of the driver (stored-publish.ts, retries.ts); the connection and the broker are modelled. */
export function publisherOf(options: RouterBusOptions): Publish {
  const retries = new Retries({ address: 'the model', isCluster: true, isUp: () => true, up: async () => {}, redeclare: async () => {} });
  const link = { requests: requestsOf(options), retries } as unknown as NatsLink;
  const publish = storedPublisher({ link, budgetMs: BUDGET_MS, onFull: () => {} });
  return async (kind, messageId, body, earlier = 0) => {
    const { duplicate } = await publish(kind, messageId, body, deliveryHeaders(earlier));
    options.router.confirmed(messageId);
    return { duplicate };
  };
}

/** A reply that comes later than the sender waits for it is ignored. */
function requestsOf(options: RouterBusOptions): Pick<Requests, 'ask'> {
  const { scheduler, process, broker, router } = options;
  const ask = askerOf(options);
  const store = (kind: WorkKind, body: string, given: MsgHdrs | undefined) => {
    if (scheduler.nowMs < router.leaderlessUntilMs) return NO_LEADER;
    const messageId = fromWireId(given?.get(MESSAGE_ID_HEADER) ?? '');
    router.arrived(messageId, body);
    return { seq: 1, ...broker.publish(kind, messageId, body, earlierDeliveries(given)) };
  };
  return {
    ask: (kind, payload, { timeoutMs, headers }) =>
      new Promise((resolve, reject) => {
        const timer = scheduler.setTimer(process, () => reject(new TimeoutError()), timeoutMs, null);
        const body = Buffer.from(payload).toString('utf8');
        ask(`${PUBLISHES} ${kind}`, () => store(kind as WorkKind, body, headers))
          .then((reply) => resolve({ json: () => reply } as never), reject)
          .finally(() => scheduler.clear(timer));
      }),
  };
}
