import { AsyncResource } from 'node:async_hooks';
import type { ConsumeOptions, WorkItem } from '../bus.ts';

/** A handler of one kind of work, with its slots. */
export interface Consumer extends ConsumeOptions {
  handler: (item: WorkItem) => Promise<void>;
  inFlight: Set<Promise<void>>;
  stopping: AbortController;
}

/** @param handler bound to the caller's context: deliveries begin in the context of whatever freed the slot or item */
export function newConsumer({ concurrency, ackWaitMs }: ConsumeOptions, handler: Consumer['handler']): Consumer {
  return { concurrency, ackWaitMs, handler: AsyncResource.bind(handler), inFlight: new Set(), stopping: new AbortController() };
}

/** The one with the fewest items in flight, which goes to the end of the list; null: no slot is free. */
export function nextConsumer(consumers: Consumer[]): Consumer | null {
  const free = consumers.filter((consumer) => consumer.inFlight.size < consumer.concurrency);
  if (free.length === 0) return null;
  const next = free.reduce((best, other) => (other.inFlight.size < best.inFlight.size ? other : best));
  consumers.push(...consumers.splice(consumers.indexOf(next), 1));
  return next;
}
