import { addresses, type BusUser } from '../subjects.ts';
import { inboxPrefixOf } from './dial.ts';
import { admittedKinds, type StreamUse, streams, workConsumers } from './streams.ts';

/** Subjects, with wildcards; all others are refused. */
interface Permissions {
  publish: string[];
  subscribe: string[];
}

export const busUsers: readonly BusUser[] = ['router-gateway', 'agent-gateway', 'actor-host', 'router-worker', 'effect-worker', 'operator'];

const API = '$JS.API';
/** Stored subjects are read through consumers only: no user may subscribe to them directly. */
const storedWork = [addresses.turnCalls, addresses.clientCalls, addresses.tools, addresses.deliveries];
const consumedOnly: readonly Address[] = [addresses.commands, ...storedWork];

type Address = (typeof addresses)[keyof typeof addresses];

/**
 * A user's permissions: its subjects in `subjects.ts`, and exactly those calls of the JetStream API that the driver makes for it. No user may delete a
 * stream.
 */
export function permissionsOf(user: BusUser): Permissions {
  const publishes = Object.values<Address>(addresses).filter((address) => includes(address.publish, user));
  const reads = Object.values<Address>(addresses).filter((address) => includes(address.read, user));
  const publish = [
    ...publishes.map((address) => address.pattern),
    ...Object.values(streams).flatMap((stream) => declaring(stream, user)),
    ...(publishes.some(mayBeLarge) ? streams.blobs.subjects : []),
    ...(reads.some(mayBeLarge) ? streams.blobs.subjects.map((subject) => `${API}.DIRECT.GET.${streams.blobs.name}.${subject}`) : []),
    ...(includes(addresses.commands.read, user) ? readingCommands() : []),
    ...(includes([...addresses.tokens.read, ...addresses.tokens.publish], user) ? readingTokens() : []),
    ...Object.values(workConsumers).flatMap((consumer) => (reads.some(({ pattern }) => pattern === consumer.subject) ? consuming(consumer) : [])),
    ...lookingAtQueues(user),
  ];
  const subscribe = [
    ...reads.filter((address) => !consumedOnly.includes(address)).map((address) => address.pattern),
    // Replies of the broker. Each user has its own prefix, so that none reads another's.
    `${inboxPrefixOf(user)}.>`,
  ];
  return { publish, subscribe };
}

/**
 * Each process declares its streams after each connect, and may create a missing one: memory streams end with the broker, disks get replaced, processes start
 * in any order, and a router-only deployment has no actor host. Creating changes no existing stream: the broker refuses a name that has another
 * configuration. Only the operator may update: an update can delete stored messages, or make the broker copy one stream into another.
 */
function declaring({ name, users }: StreamUse, user: BusUser): string[] {
  const calls = user === 'operator' ? ['INFO', 'CREATE', 'UPDATE'] : users.includes(user) ? ['INFO', 'CREATE'] : [];
  return calls.map((call) => `${API}.STREAM.${call}.${name}`);
}

/** A consumer per reader of a partition, look-ups by sequence, and the purge of what all cursors are past. */
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

/** A consumer per replay: of readers, and of a worker that takes a call over from another. */
function readingTokens(): string[] {
  const { name } = streams.tokens;
  return [`${API}.CONSUMER.CREATE.${name}.*.${addresses.tokens.pattern}`, `${API}.CONSUMER.MSG.NEXT.${name}.*`, `${API}.CONSUMER.DELETE.${name}.*`];
}

/** The consumer of a kind of work, and its acks in the current and in the longer form of newer brokers. */
function consuming({ name, subject }: { name: string; subject: string }): string[] {
  const stream = streams.work.name;
  return [
    `${API}.CONSUMER.CREATE.${stream}.${name}.${subject}`,
    `${API}.CONSUMER.MSG.NEXT.${stream}.${name}`,
    `$JS.ACK.${stream}.${name}.>`,
    `$JS.ACK.*.*.${stream}.${name}.>`,
  ];
}

/** The queue length of a gateway's admitted kind. */
function lookingAtQueues(user: BusUser): string[] {
  const kind = admittedKinds[user];
  return kind === undefined ? [] : [`${API}.CONSUMER.INFO.${streams.work.name}.${workConsumers[kind].name}`];
}

/** Whether its bodies may travel as blobs. */
function mayBeLarge(address: Address): boolean {
  return consumedOnly.includes(address);
}

/** Widens the literal types of the table's lists. */
function includes(users: readonly BusUser[], user: BusUser): boolean {
  return users.includes(user);
}
