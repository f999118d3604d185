import type { StreamConfig } from '@nats-io/jetstream';
import type { WorkKind } from '../bus.ts';
import { addresses, type BusUser } from '../subjects.ts';
import type { NatsSettings } from './settings.ts';

/** A stream of the broker: what it captures, and who declares it, because they write or read it. */
export interface StreamUse {
  name: string;
  subjects: readonly string[];
  /** Each of them may create it when it is not there. None may change it: the operator's command does that (docs/adr/0024). */
  users: readonly BusUser[];
}

const { commands, turnCalls, clientCalls, tools, deliveries, tokens } = addresses;
const work = [turnCalls, clientCalls, tools, deliveries];

/** Every stream of the house. The declarations below and the broker's permissions are made from this one table. */
export const streams = {
  commands: { name: 'CMD', subjects: [commands.pattern], users: usersOf([commands]) },
  work: { name: 'WORK', subjects: ['work.>'], users: usersOf(work) },
  tokens: { name: 'TOK', subjects: ['tok.>'], users: usersOf([tokens]) },
  /** Bodies too large for a message, of commands and work. */
  blobs: { name: 'BLOB', subjects: ['blob.>'], users: usersOf([commands, ...work]) },
} as const satisfies Record<string, StreamUse>;

/** The durable consumer of each kind of work: all workers of a kind share it. */
export const workConsumers: Record<WorkKind, { name: string; subject: string }> = {
  'router.turn': { name: 'router-turn', subject: turnCalls.pattern },
  'router.call': { name: 'router-call', subject: clientCalls.pattern },
  tool: { name: 'tool', subject: tools.pattern },
  delivery: { name: 'delivery', subject: deliveries.pattern },
};

/** What becomes of that which a gateway lets in from outside: it asks how long that would wait. */
export const admittedKinds: Partial<Record<BusUser, WorkKind>> = { 'router-gateway': 'router.call', 'agent-gateway': 'router.turn' };

/** What a stream is declared as. Fields that are not named here are left to the broker. */
export type StreamDeclaration = Pick<
  StreamConfig,
  'name' | 'subjects' | 'storage' | 'retention' | 'discard' | 'max_age' | 'max_bytes' | 'duplicate_window' | 'allow_direct'
>;

/** The streams that a user declares at its start and whenever the broker comes back; null: all of them. */
export function declarationsFor(user: BusUser | null, settings: NatsSettings): StreamDeclaration[] {
  const isUsed = ({ users }: StreamUse) => user === null || users.includes(user);
  return [commandStream(settings), workStream(settings), tokenStream(settings), blobStream(settings)]
    .filter(({ use }) => isUsed(use))
    .map(({ use, declaration }) => ({ name: use.name, subjects: [...use.subjects], ...declaration }));
}

type Declared = { use: StreamUse; declaration: Omit<StreamDeclaration, 'name' | 'subjects'> };

/** No age: commands that nobody could read for a day are still owed. They go when all cursors have passed them. */
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

/** No limit per subject: it would cost the broker four times the processor for each frame. */
function tokenStream({ tokenMaxAgeMs, tokenMaxBytes }: NatsSettings): Declared {
  return {
    use: streams.tokens,
    declaration: {
      storage: 'memory',
      retention: 'limits',
      discard: 'old',
      max_age: nanosOf(tokenMaxAgeMs),
      max_bytes: tokenMaxBytes,
      // Frames have no message id, so nothing is remembered of them.
      duplicate_window: nanosOf(Math.min(120_000, tokenMaxAgeMs)),
      allow_direct: true,
    },
  };
}

/** Full means refused: a body that made room for another would be lost to the command that names it. */
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

function usersOf(parts: readonly { publish: readonly BusUser[]; read: readonly BusUser[] }[]): BusUser[] {
  return [...new Set(parts.flatMap(({ publish, read }) => [...publish, ...read]))].sort();
}

/** The broker counts durations in nanoseconds. */
export function nanosOf(ms: number): number {
  return ms * 1_000_000;
}
