import type { BusUser } from '../subjects.ts';
import { busUsers, permissionsOf } from './permissions.ts';
import { defaultSettings } from './settings.ts';

export interface ServerConfigOptions {
  /** Where streams are stored; null: set on the command line. */
  storeDir?: string | null;
  /** `host:port`; null: set on the command line. */
  listen?: string | null;
  /** `host:port` of monitoring and health checks; null: none. */
  monitor?: string | null;
  /** Sync to disk before each ack, against loss of power; false: within two minutes. Servers before 2.10 don't start with this setting. */
  syncAlways?: boolean;
}

/** Space for the broker's own files. */
const HEADROOM = 1.1;

/** The server's environment variable. It begins with a letter, since the server parses digits as a number. */
export function passwordVariableOf(user: BusUser): string {
  return `NATS_PASSWORD_${user.toUpperCase().replaceAll('-', '_')}`;
}

/**
 * A configuration of nats-server: storage for our streams, and a user per service with exactly its permissions. Passwords come from the server's environment;
 * it does not start without them.
 */
export function natsServerConfig({ storeDir = null, listen = null, monitor = null, syncAlways = false }: ServerConfigOptions = {}): string {
  const { commandMaxBytes, workMaxBytes, blobMaxBytes, tokenMaxBytes } = defaultSettings;
  const lines = [
    '# Made by bus/nats/server-config.ts from bus/subjects.ts and bus/nats/streams.ts: change those.',
    ...(listen === null ? [] : [`listen: ${JSON.stringify(listen)}`]),
    ...(monitor === null ? [] : [`http: ${JSON.stringify(monitor)}`]),
    'jetstream {',
    ...(storeDir === null ? [] : [`  store_dir: ${JSON.stringify(storeDir)}`]),
    ...(syncAlways ? ['  sync_interval: always'] : []),
    `  max_memory_store: ${capacityFor([tokenMaxBytes])}`,
    `  max_file_store: ${capacityFor([commandMaxBytes, workMaxBytes, blobMaxBytes])}`,
    '}',
    'authorization {',
    '  users: [',
    ...busUsers.flatMap(userLines),
    '  ]',
    '}',
  ];
  return `${lines.join('\n')}\n`;
}

/**
 * Streams reserve their limits. Processes that start together all create the missing ones, and nats-server 2.9 counts creating an existing one again: so the
 * largest counts twice.
 */
function capacityFor(streamBytes: readonly number[]): number {
  return Math.ceil((streamBytes.reduce((sum, bytes) => sum + bytes, 0) + Math.max(...streamBytes)) * HEADROOM);
}

function userLines(user: BusUser): string[] {
  const { publish, subscribe } = permissionsOf(user);
  return [
    '    {',
    `      user: ${JSON.stringify(user)}, password: $${passwordVariableOf(user)}`,
    '      permissions: {',
    ...subjectLines('publish', publish),
    ...subjectLines('subscribe', subscribe),
    '      }',
    '    }',
  ];
}

function subjectLines(what: string, subjects: readonly string[]): string[] {
  return [`        ${what}: { allow: [`, ...subjects.map((subject) => `          ${JSON.stringify(subject)}`), '        ] }'];
}
