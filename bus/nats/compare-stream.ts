import type { StreamConfig } from '@nats-io/jetstream';
import type { StreamDifference } from '../stream-upgrade.ts';
import type { StreamDeclaration } from './streams.ts';

export interface StreamComparison {
  /** Set fields by which messages are copied into the stream, out of it, or to another subject. None of ours has any. */
  copying: string[];
  differences: StreamDifference[];
}

/** Settings of nats-server (2.10 or before) by which the broker itself moves messages, past its users' permissions. */
const COPYING_FIELDS = ['sources', 'mirror', 'republish', 'subject_transform'] as const satisfies readonly (keyof StreamConfig)[];

/**
 * Defaults of settings that no declaration names, where any other value changes what a stream stores or confirms: `no_ack` confirms nothing,
 * `allow_rollup_hdrs` lets a publisher delete stored messages. Replicas, placement and the like are the operator's choice.
 */
const LEFT_TO_BROKER: Partial<StreamConfig> = {
  max_msgs: -1,
  max_msgs_per_subject: -1,
  max_msg_size: -1,
  max_consumers: -1,
  no_ack: false,
  sealed: false,
  deny_delete: false,
  deny_purge: false,
  allow_rollup_hdrs: false,
};

/** Compares a stream's configuration with its declaration. */
export function compareStream(found: Partial<StreamConfig>, { name: _, ...declaration }: StreamDeclaration): StreamComparison {
  const copying = COPYING_FIELDS.filter((field) => !isEmpty(found[field]));
  const fields = new Map<string, unknown>(Object.entries(found));
  const differences = Object.entries({ ...LEFT_TO_BROKER, ...declaration })
    .map(([field, declared]) => ({ field, found: fields.get(field) ?? Object.entries(LEFT_TO_BROKER).find(([known]) => known === field)?.[1], declared }))
    .filter((one) => JSON.stringify(one.found) !== JSON.stringify(one.declared));
  return { copying, differences };
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}
