import type { StreamConfig } from '@nats-io/jetstream';
import { addresses, type BusRole, type BusUser, rolesOf } from '../subjects.ts';
import { workQueues } from '../work-queues.ts';
import type { NatsSettings } from './settings.ts';

/** A stream of the broker: what it captures, and which roles publish to it or read it. */
export interface StreamUse {
  name: string;
  subjects: readonly string[];
  /** May create it when missing; only the operator's command may change it (docs/adr/0024). */
  users: readonly BusRole[];
  /** Ask how full it is before they admit a call, and use it for nothing else. */
  admits?: readonly BusRole[];
}

const { commands, tokens, usage } = addresses;
const work = Object.values(workQueues);

/** The one durable consumer of the usage log, of all its readers. */
export const USAGE_CONSUMER = 'usage';

/** All streams. Declarations and the broker's permissions derive from this table. */
export const streams = {
  commands: { name: 'CMD', subjects: [commands.pattern], users: usersOf([commands]) },
  work: { name: 'WORK', subjects: ['work.>'], users: usersOf(work) },
  tokens: { name: 'TOK', subjects: ['tok.>'], users: usersOf([tokens]) },
  /** Large bodies of commands and work. */
  blobs: { name: 'BLOB', subjects: ['blob.>'], users: usersOf([commands, ...work]) },
  usage: { name: 'USAGE', subjects: [usage.pattern], users: usersOf([usage]), admits: ['router-gateway', 'agent-gateway'] },
} as const satisfies Record<string, StreamUse>;

/** Other fields keep the broker's defaults. */
export type StreamDeclaration = Pick<
  StreamConfig,
  'name' | 'subjects' | 'storage' | 'retention' | 'discard' | 'max_age' | 'max_bytes' | 'duplicate_window' | 'allow_direct' | 'num_replicas'
>;

/** The streams that a user declares at the start and after each reconnect; null: all. */
export function declarationsFor(user: BusUser | null, settings: NatsSettings): StreamDeclaration[] {
  const isUsed = ({ users }: StreamUse) => user === null || hasRole(user, users);
  return [commandStream(settings), workStream(settings), tokenStream(settings), blobStream(settings), usageStream(settings)]
    .filter(({ use }) => isUsed(use))
    .map(({ use, declaration }) => ({ name: use.name, subjects: [...use.subjects], num_replicas: settings.replicas, ...declaration }));
}

/** A stream whose fill level decides whether new work is admitted. */
export interface AdmissionStream {
  name: string;
  /** False: others create it, and until then it is empty. */
  isDeclared: boolean;
}

/** Those that a user may ask about; null: all. */
export function admissionStreamsOf(user: BusUser | null): AdmissionStream[] {
  const asked: readonly StreamUse[] = [streams.commands, streams.work, streams.usage];
  return asked
    .map(({ name, users, admits = [] }) => ({ name, isDeclared: user === null || hasRole(user, users), isAsked: user !== null && hasRole(user, admits) }))
    .filter(({ isDeclared, isAsked }) => isDeclared || isAsked)
    .map(({ name, isDeclared }) => ({ name, isDeclared }));
}

type Declared = { use: StreamUse; declaration: Omit<StreamDeclaration, 'name' | 'subjects' | 'num_replicas'> };

/** No maximum age: commands that no host could read for a day must still be applied. Purged when all cursors are past them. */
function commandStream({ dedupeMs, commandMaxBytes }: NatsSettings): Declared {
  return {
    use: streams.commands,
    declaration: {
      storage: 'file',
      retention: 'limits',
      discard: 'new',
      max_age: 0,
      max_bytes: commandMaxBytes,
      duplicate_window: nanosOf(dedupeMs),
      allow_direct: true,
    },
  };
}

function workStream({ dedupeMs, workMaxAgeMs, workMaxBytes }: NatsSettings): Declared {
  return {
    use: streams.work,
    declaration: {
      storage: 'file',
      retention: 'workqueue',
      discard: 'new',
      max_age: nanosOf(workMaxAgeMs),
      max_bytes: workMaxBytes,
      duplicate_window: nanosOf(Math.min(dedupeMs, workMaxAgeMs)),
      allow_direct: false,
    },
  };
}

/** No limit per subject: it would cost four times the CPU per frame. */
function tokenStream({ tokenMaxAgeMs, tokenMaxBytes }: NatsSettings): Declared {
  return {
    use: streams.tokens,
    declaration: {
      storage: 'memory',
      retention: 'limits',
      discard: 'old',
      max_age: nanosOf(tokenMaxAgeMs),
      max_bytes: tokenMaxBytes,
      // Frames have no message id.
      duplicate_window: nanosOf(Math.min(120_000, tokenMaxAgeMs)),
      allow_direct: true,
    },
  };
}

/** New bodies are refused when full: discarding an old one would lose a stored command's body. */
function blobStream({ dedupeMs, blobMaxAgeMs, blobMaxBytes }: NatsSettings): Declared {
  return {
    use: streams.blobs,
    declaration: {
      storage: 'file',
      retention: 'limits',
      discard: 'new',
      max_age: nanosOf(blobMaxAgeMs),
      max_bytes: blobMaxBytes,
      duplicate_window: nanosOf(Math.min(dedupeMs, blobMaxAgeMs)),
      allow_direct: true,
    },
  };
}

/** No maximum age, unlike other work: what a call has cost must be booked however long the ledger's database is away. */
function usageStream({ dedupeMs, usageMaxBytes }: NatsSettings): Declared {
  return {
    use: streams.usage,
    declaration: {
      storage: 'file',
      retention: 'workqueue',
      discard: 'new',
      max_age: 0,
      max_bytes: usageMaxBytes,
      duplicate_window: nanosOf(dedupeMs),
      allow_direct: false,
    },
  };
}

function hasRole(user: BusUser, roles: readonly BusRole[]): boolean {
  return rolesOf(user).some((role) => roles.includes(role));
}

function usersOf(parts: readonly { publish: readonly BusRole[]; read: readonly BusRole[] }[]): BusRole[] {
  return [...new Set(parts.flatMap(({ publish, read }) => [...publish, ...read]))].sort();
}

export function nanosOf(ms: number): number {
  return ms * 1_000_000;
}
