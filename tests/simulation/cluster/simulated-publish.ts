import { createInbox } from '@nats-io/transport-node';
import type { NatsLink } from '../../../bus/nats/connection/link.ts';
import { Requests } from '../../../bus/nats/connection/requests.ts';
import { Retries } from '../../../bus/nats/connection/retries.ts';
import { type StoredPublish, storedPublisher } from '../../../bus/nats/connection/stored-publish.ts';
import { MESSAGE_ID_HEADER } from '../../../bus/nats/connection/wire-id.ts';
import { brokerLost } from '../broker-lost.ts';
import type { ModelBroker } from '../model-broker.ts';
import type { Process, Scheduler } from '../scheduler.ts';
import type { ModelCluster } from './model-cluster.ts';
import { type Sent, simulatedConnection } from './simulated-connection.ts';

/** As the driver's: of a publish with its repeats. */
const BUDGET_MS = 8_000;

// Its first name draws random numbers, which would be those of a seed.
createInbox();

interface PublishOptions {
  scheduler: Scheduler;
  broker: ModelBroker;
  cluster: ModelCluster;
  process: Process;
}

/**
 * Publishes of a process to streams, by the driver's own modules: stored-publish.ts, store-message.ts, leaderless-streams.ts, retries.ts and requests.ts. The
 * connection and the broker are modelled.
 */
export function simulatedPublisher(options: PublishOptions): StoredPublish {
  const { isCluster, version } = options.cluster;
  const connection = simulatedConnection((sent) => {
    send(options, sent).then(
      (answers) => answers?.(),
      (error) => {
        // As the link does: what was sent over the connection is not answered over the next one.
        retries.interrupt(error);
        requests.end(error);
      },
    );
  });
  const requests = new Requests(connection, '_INBOX');
  const retries = new Retries({ address: 'the model', isCluster, isUp: () => true, up: async () => {}, redeclare: async () => {} });
  const link = { requests, retries, isCluster, main: { info: { version } } } as unknown as NatsLink;
  const publish = storedPublisher({ link, budgetMs: BUDGET_MS, onFull: () => {} });
  return async (subject, messageId, ...rest) => {
    const stored = await publish(subject, messageId, ...rest);
    options.cluster.streamOf(subject).confirmed(messageId);
    return stored;
  };
}

/**
 * Over a connection that may be half-open: nothing arrives then.
 * @returns delivers the answer; null: it comes later, or never
 * @throws `service.unreachable` the connection is lost
 */
function send({ scheduler, broker, cluster, process }: PublishOptions, { subject, payload, headers, reply }: Sent): Promise<(() => void) | null> {
  if (broker.isCutOff(process)) return Promise.resolve(null);
  const message = { subject, wireId: headers?.get(MESSAGE_ID_HEADER) ?? '', body: Buffer.from(payload).toString('utf8'), headers };
  return scheduler.park(process, `publishes ${subject}`, brokerLost, () => {
    let answers: (() => void) | null = null;
    let isLate = false;
    cluster.streamOf(subject).receive(message, (answer) => {
      answers = () => reply(answer);
      if (isLate && !broker.isCutOff(process)) scheduler.post(process, broker.nextKey('reply'), 'receives the reply to a publish', answers);
    });
    isLate = true;
    return answers;
  });
}
