import { addresses, type BusUser } from '../subjects.ts';
import { inboxPrefixOf } from './dial.ts';
import { admittedKinds, type StreamUse, streams, workConsumers } from './streams.ts';

/** Subjects, with wildcards. What is not named is refused. */
interface Permissions {
  publish: string[];
  subscribe: string[];
}

/** Everybody who has a user at the broker. */
export const busUsers: readonly BusUser[] = ['router-gateway', 'agent-gateway', 'actor-host', 'router-worker', 'effect-worker', 'operator'];

const API = '$JS.API';
/** What a stream keeps is read through a consumer, and by its readers alone: nobody may listen to its subjects as they pass. */
const storedWork = [addresses.turnCalls, addresses.clientCalls, addresses.tools, addresses.deliveries];
const consumedOnly: readonly Address[] = [addresses.commands, ...storedWork];

type Address = (typeof addresses)[keyof typeof addresses];

/**
 * What a user may do at the broker: what `subjects.ts` says that its service does, and of the broker's own interface exactly those calls
 * that the driver makes for it. Nobody may delete a stream.
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
    // Answers of the broker. Each user has a prefix of its own, so nobody reads what was meant for another.
    `${inboxPrefixOf(user)}.>`,
  ];
  return { publish, subscribe };
}

/**
 * Declared after each connect by the processes that use them. Each user may create one that is missing: memory streams end with the broker,
 * one on a disk ends when that is replaced, processes start in any order, and a deployment of the router alone has no actor host. Creating
 * changes nothing that is there: the broker refuses a stream of a name that is taken by another configuration. Changing is for the
 * operator alone: an update can delete what a stream holds, and can make the broker copy one stream into another.
 */
function declaring({ name, users }: StreamUse, user: BusUser): string[] {
  const calls = user === 'operator' ? ['INFO', 'CREATE', 'UPDATE'] : users.includes(user) ? ['INFO', 'CREATE'] : [];
  return calls.map((call) => `${API}.STREAM.${call}.${name}`);
}

/** A consumer per partition, made for each reader and ended with it; commands looked up at their place; and the purge of what all have read. */
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

/** A consumer per call that is read back: by its readers, and by a worker that takes over from another what has been shown. */
function readingTokens(): string[] {
  const { name } = streams.tokens;
  return [`${API}.CONSUMER.CREATE.${name}.*.${addresses.tokens.pattern}`, `${API}.CONSUMER.MSG.NEXT.${name}.*`, `${API}.CONSUMER.DELETE.${name}.*`];
}

/** The one consumer of a kind of work, and its acks, in the form of today's brokers and in the longer one of newer ones. */
function consuming({ name, subject }: { name: string; subject: string }): string[] {
  const stream = streams.work.name;
  return [
    `${API}.CONSUMER.CREATE.${stream}.${name}.${subject}`,
    `${API}.CONSUMER.MSG.NEXT.${stream}.${name}`,
    `$JS.ACK.${stream}.${name}.>`,
    `$JS.ACK.*.*.${stream}.${name}.>`,
  ];
}

/** How much waits, of what a gateway lets in. */
function lookingAtQueues(user: BusUser): string[] {
  const kind = admittedKinds[user];
  return kind === undefined ? [] : [`${API}.CONSUMER.INFO.${streams.work.name}.${workConsumers[kind].name}`];
}

/** Bodies of commands and work travel as blobs when they are large. */
function mayBeLarge(address: Address): boolean {
  return consumedOnly.includes(address);
}

/** For lists that the table knows more exactly than who asks. */
function includes(users: readonly BusUser[], user: BusUser): boolean {
  return users.includes(user);
}
