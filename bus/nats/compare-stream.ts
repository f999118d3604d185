import type { StreamConfig } from '@nats-io/jetstream';
import type { StreamDifference } from '../stream-upgrade.ts';
import type { StreamDeclaration } from './streams.ts';

export interface StreamComparison {
  /** Fields by which messages are copied into the stream, out of it, or under another subject. None of ours has any. */
  copying: string[];
  differences: StreamDifference[];
}

/** Settings of nats-server, known since 2.10 or before, by which the broker itself moves messages, past the permissions of its users. */
const COPYING_FIELDS = ['sources', 'mirror', 'republish', 'subject_transform'] as const satisfies readonly (keyof StreamConfig)[];

/**
 * What the broker fills in for settings that no declaration names. Any other value changes what a stream keeps or confirms: `no_ack` confirms
 * nothing, and with `allow_rollup_hdrs` a publisher can delete what is stored. Replicas, placement and the like are the operator's to choose.
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

/** A stream as the broker describes it, beside its declaration. */
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
