import type { StreamConfig } from '@nats-io/jetstream';
import type { StreamDifference } from '../stream-upgrade.ts';
import type { StreamDeclaration } from './streams.ts';

export interface StreamComparison {
  /** Fields that copy messages into the stream, out of it, or to another subject. Ours have none. */
  copying: string[];
  differences: StreamDifference[];
}

/** With these settings, known to nats-server since 2.10 or before, the broker itself copies messages, past its users' permissions. */
const COPYING_FIELDS = ['sources', 'mirror', 'republish', 'subject_transform'] as const satisfies readonly (keyof StreamConfig)[];

/**
 * Defaults of what no declaration names. Other values change what is stored or confirmed: `no_ack` confirms nothing, `allow_rollup_hdrs` lets publishers
 * delete. Placement and the like are the operator's.
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

/** More replicas than declared are no difference: a process that lacks the setting must not take any away. */
export function compareStream(found: Partial<StreamConfig>, { name: _, ...declaration }: StreamDeclaration): StreamComparison {
  const copying = COPYING_FIELDS.filter((field) => !isEmpty(found[field]));
  const fields = new Map<string, unknown>(Object.entries(found));
  const expected = { ...LEFT_TO_BROKER, ...declaration, num_replicas: Math.max(found.num_replicas ?? 1, declaration.num_replicas) };
  const differences = Object.entries(expected)
    .map(([field, declared]) => ({ field, found: fields.get(field) ?? Object.entries(LEFT_TO_BROKER).find(([known]) => known === field)?.[1], declared }))
    .filter((one) => JSON.stringify(one.found) !== JSON.stringify(one.declared));
  return { copying, differences };
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}
