import type { BusUser } from '../subjects.ts';
import { busUsers, permissionsOf } from './permissions.ts';
import { defaultSettings } from './settings.ts';

export interface ServerConfigOptions {
  /** Where streams are kept; null: the server is told on its command line. */
  storeDir?: string | null;
  /** `host:port`; null: likewise. */
  listen?: string | null;
  /** `host:port` where the server tells how it does, and answers health checks; null: nowhere. */
  monitor?: string | null;
  /**
   * Whether what is stored is on the disk before it is confirmed, as a machine that may lose its power needs it; false: within two minutes.
   * A server older than 2.10 does not know the setting and refuses to start with it.
   */
  syncAlways?: boolean;
}

/** What the broker keeps beside the streams. */
const HEADROOM = 1.1;

/** The environment variable of the server that holds a user's password. It must begin with a letter: the server takes digits for a number. */
export function passwordVariableOf(user: BusUser): string {
  return `NATS_PASSWORD_${user.toUpperCase().replaceAll('-', '_')}`;
}

/**
 * A configuration of nats-server: JetStream with room for our streams, and a user for each service that may do what the service does and
 * nothing else. Passwords are not in it: the server reads them from its environment, and does not start without.
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
 * Streams reserve what they may hold. Processes that start together all create what none of them has found, and the broker (2.9) asks for
 * room for a stream that is there already as if it came on top: so there is room for the largest twice.
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
