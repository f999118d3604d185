import { type ConsumerInfo, JetStreamApiCodes, JetStreamApiError } from '@nats-io/jetstream';
import type { UsageBacklog } from '../../bus.ts';
import type { NatsLink } from '../connection/link.ts';
import { streams, USAGE_CONSUMER } from '../streams.ts';

/** A late answer is useless: it is asked for again soon. */
const BUDGET_MS = 1_000;

/**
 * What is not accepted yet. A broker that was killed may keep records that were acked before (nats-server 2.9 stores acks and removals separately), for ever
 * since they have no age: those below the consumer's ack floor are purged here.
 */
export async function usageBacklog(link: NatsLink): Promise<UsageBacklog> {
  const { name } = streams.usage;
  // Before the stream: what is acked meanwhile is gone from it, and not below this floor.
  const consumer = await link.retries.callApi('describe the consumer of usage', BUDGET_MS, () => findConsumer(link));
  const describe = () => link.retries.callApi('describe the usage log', BUDGET_MS, () => link.manager.streams.info(name));
  const found = await describe();
  const floor = consumer?.ack_floor.stream_seq ?? 0;
  const keepsAccepted = found.state.messages > 0 && found.state.first_seq <= floor;
  // Not retried, and not of a stream that is newer than the consumer: after a loss of the stream its records have sequences below the floor.
  if (keepsAccepted && consumer !== null && Date.parse(consumer.created) >= Date.parse(found.created))
    await link.changes.streams.purge(name, { seq: floor + 1 });
  const { state } = keepsAccepted ? await describe() : found;
  return { records: state.messages, oldestAtMs: state.messages === 0 ? null : Date.parse(state.first_ts) };
}

/** Null: nothing has been consumed yet. */
async function findConsumer(link: NatsLink): Promise<ConsumerInfo | null> {
  try {
    return await link.manager.consumers.info(streams.usage.name, USAGE_CONSUMER);
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.ConsumerNotFound) return null;
    throw error;
  }
}
