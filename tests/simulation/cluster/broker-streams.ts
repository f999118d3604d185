import type { WorkKind } from '../../../bus/bus.ts';
import { fromWireId } from '../../../bus/nats/connection/wire-id.ts';
import { earlierDeliveries } from '../../../bus/nats/work/earlier-deliveries.ts';
import { workQueues } from '../../../bus/work-queues.ts';
import type { ModelBroker } from '../model-broker.ts';
import type { Published, StreamStore } from './model-stream.ts';

/** The queue of work, as a stream of the broker. @param arrived called with each item that is stored, before it is */
export function workStream(broker: ModelBroker, arrived: (messageId: string, body: string) => void = () => {}): StreamStore {
  return {
    // Sequences of items have no reader.
    sequenceOf: (wireId) => (broker.hasItem(wireId) ? 1 : null),
    store({ subject, wireId, body, headers }: Published) {
      const messageId = fromWireId(wireId);
      arrived(messageId, body);
      broker.publish(kindOf(subject), messageId, body, earlierDeliveries(headers), wireId);
      return { seq: 1 };
    },
  };
}

/** The log of commands, as a stream of the broker. */
export function commandStream(broker: ModelBroker): StreamStore {
  return {
    sequenceOf: (wireId) => broker.sequenceOf(wireId),
    store({ subject, wireId, body }) {
      const partition = Number(subject.slice(subject.indexOf('.') + 1));
      return { seq: broker.append(partition, fromWireId(wireId), body, wireId).sequence };
    },
  };
}

function kindOf(subject: string): WorkKind {
  const found = Object.entries(workQueues).find(([, { pattern }]) => pattern === subject);
  if (found === undefined) throw new TypeError(`no queue has ${subject}`);
  return found[0] as WorkKind;
}
