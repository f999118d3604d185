import { type Address, addresses, type BusRole, type BusUser, rolesOf } from '../subjects.ts';
import { workQueues } from '../work-queues.ts';
import { inboxPrefixOf } from './connection/dial.ts';
import { type StreamUse, streams, USAGE_CONSUMER } from './streams.ts';

/** With wildcards; all else is refused. */
interface Permissions {
  publish: string[];
  subscribe: string[];
}

export const busUsers: readonly BusUser[] = ['router-gateway', 'agent-gateway', 'actor-host', 'router-worker', 'effect-worker', 'router', 'agent', 'operator'];

const API = '$JS.API';
const { commands, usage, ...notices } = addresses;
const queues = Object.values(workQueues);
/** Bodies may be blobs. */
const large: readonly Address[] = [commands, ...queues];
/** Read through consumers only, never subscribed to. */
const consumedOnly: readonly Address[] = [...large, usage];
const all: readonly Address[] = [...consumedOnly, ...Object.values(notices)];

/** A user's subjects in `subjects.ts`, and exactly those JetStream API calls that the driver makes for it. No user may delete a stream. */
export function permissionsOf(user: BusUser): Permissions {
  const publishes = all.filter((address) => includes(address.publish, user));
  const reads = all.filter((address) => includes(address.read, user));
  const publish = [
    ...publishes.map((address) => address.pattern),
    ...Object.values(streams).flatMap((stream) => declaring(stream, user)),
    ...(publishes.some(mayBeLarge) ? streams.blobs.subjects : []),
    ...(reads.some(mayBeLarge) ? streams.blobs.subjects.map((subject) => `${API}.DIRECT.GET.${streams.blobs.name}.${subject}`) : []),
    ...(includes(addresses.commands.read, user) ? readingCommands() : []),
    ...(includes([...addresses.tokens.read, ...addresses.tokens.publish], user) ? readingTokens() : []),
    ...queues.flatMap((queue) => (includes(queue.read, user) ? consuming(streams.work, queue) : [])),
    ...(includes(usage.read, user) ? consumingUsage() : []),
    ...queues.flatMap((queue) => (includes(queue.admits, user) ? [`${API}.CONSUMER.INFO.${streams.work.name}.${queue.consumer}`] : [])),
  ];
  const subscribe = [
    ...reads.filter((address) => !consumedOnly.includes(address)).map((address) => address.pattern),
    // A prefix per user, so that none reads another's replies.
    `${inboxPrefixOf(user)}.>`,
  ];
  return { publish, subscribe };
}

/**
 * Every user may create its missing streams: memory streams end with the broker, disks get replaced, processes start in any order, and a router-only
 * deployment has no actor host. Creating never changes a stream: the broker refuses a name with another configuration. Only the operator may update, which
 * can delete messages or make the broker copy streams.
 */
function declaring({ name, users, admits = [] }: StreamUse, user: BusUser): string[] {
  const used = includes(users, user) ? ['INFO', 'CREATE'] : includes(admits, user) ? ['INFO'] : [];
  const calls = user === 'operator' ? ['INFO', 'CREATE', 'UPDATE'] : used;
  return calls.map((call) => `${API}.STREAM.${call}.${name}`);
}

/** A consumer per reader, look-ups by sequence, and the purge below all cursors. */
function readingCommands(): string[] {
  const { name, subjects } = streams.commands;
  return [
    ...subjects.map((subject) => `${API}.CONSUMER.CREATE.${name}.*.${subject}`),
    `${API}.CONSUMER.MSG.NEXT.${name}.*`,
    `${API}.CONSUMER.DELETE.${name}.*`,
    `${API}.STREAM.MSG.GET.${name}`,
    `${API}.STREAM.PURGE.${name}`,
  ];
}

/** A consumer per replay: of readers, and of a worker that takes over a call. */
function readingTokens(): string[] {
  const { name } = streams.tokens;
  return [`${API}.CONSUMER.CREATE.${name}.*.${addresses.tokens.pattern}`, `${API}.CONSUMER.MSG.NEXT.${name}.*`, `${API}.CONSUMER.DELETE.${name}.*`];
}

/** The durable consumer of a subject, and its acks in both forms (delivery-subject.ts). */
function consuming({ name: stream }: StreamUse, { consumer: name, pattern: subject }: { consumer: string; pattern: string }): string[] {
  return [
    `${API}.CONSUMER.CREATE.${stream}.${name}.${subject}`,
    `${API}.CONSUMER.MSG.NEXT.${stream}.${name}`,
    `$JS.ACK.${stream}.${name}.>`,
    `$JS.ACK.*.*.${stream}.${name}.>`,
  ];
}

/** Also look-ups of what the consumer does not deliver, and its purge (ADR 142). */
function consumingUsage(): string[] {
  const { name } = streams.usage;
  return [
    ...consuming(streams.usage, { ...usage, consumer: USAGE_CONSUMER }),
    `${API}.CONSUMER.INFO.${name}.${USAGE_CONSUMER}`,
    `${API}.STREAM.MSG.GET.${name}`,
    `${API}.STREAM.PURGE.${name}`,
  ];
}

function mayBeLarge(address: Address): boolean {
  return large.includes(address);
}

/** Widens the table's literal types. */
function includes(roles: readonly BusRole[], user: BusUser): boolean {
  return rolesOf(user).some((role) => roles.includes(role));
}
