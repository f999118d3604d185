import { setTimeout as delay } from 'node:timers/promises';
import type { NatsConnection } from '@nats-io/transport-node';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { pauseFor } from '../pause.ts';
import type { BusUser } from '../subjects.ts';
import { isRefusal } from './broker-errors.ts';
import { connectCorked } from './corked-transport.ts';

/** One try of a connection. The network answers in milliseconds or is not there. */
const DIAL_TIMEOUT_MS = 3_000;
const DIAL_AGAIN_MS = 200;
/** A connection that answers neither of two pings is given up: a broker that vanished without a word is noticed within 15 s. */
const PING_EVERY_MS = 5_000;
const MAX_UNANSWERED_PINGS = 2;
/** Short, because a restarted broker is back in tenths of a second; with jitter, because all processes come back at once. */
const RECONNECT_WAIT_MS = 100;
const RECONNECT_JITTER_MS = 200;

export interface Account {
  /** One address `nats://host:port`, or several with commas between them. */
  servers: string;
  user: BusUser | null;
  password: string | null;
}

/** The addresses of a setting, to be connected to and to be shown. @throws `config.invalid` for one that holds credentials */
export function addressesOf(servers: string): string[] {
  const addresses = servers
    .split(',')
    .map((address) => address.trim())
    .filter((address) => address !== '');
  if (addresses.length === 0) throw new SwitchyardError('config.invalid', 'no address of NATS is given');
  if (addresses.some((address) => address.includes('@'))) {
    throw new SwitchyardError('config.invalid', 'an address of NATS may hold no credentials: user and password have settings of their own');
  }
  return addresses;
}

/**
 * Opens a connection that from then on reconnects by itself, for ever.
 * @throws `service.unreachable` at once when the broker refuses the credentials, and when it can't be reached within the budget
 */
export async function dial(account: Account, name: string, budgetMs: number): Promise<NatsConnection> {
  const servers = addressesOf(account.servers);
  const untilMs = performance.now() + budgetMs;
  for (;;) {
    const leftMs = Math.max(1, untilMs - performance.now());
    try {
      return await within(leftMs, connectCorked({ ...options(account, servers), name, timeout: Math.min(DIAL_TIMEOUT_MS, leftMs) }));
    } catch (error) {
      if (isRefusal(error))
        throw new SwitchyardError('service.unreachable', `NATS at ${servers.join(', ')} refused the ${describeUser(account)}`, { cause: error });
      if (performance.now() + DIAL_AGAIN_MS >= untilMs) {
        throw new SwitchyardError('service.unreachable', `NATS at ${servers.join(', ')} could not be reached within ${budgetMs / 1_000} s`, { cause: error });
      }
      await delay(DIAL_AGAIN_MS); // there is no socket that would keep the process alive meanwhile;
    }
  }
}

/** Finding the address of a name has no limit of its own. A connection that comes too late is closed. */
async function within(ms: number, connecting: Promise<NatsConnection>): Promise<NatsConnection> {
  const first = await Promise.race([connecting, pauseFor(ms)]);
  if (first !== undefined) return first;
  connecting.then((late) => late.close()).catch(() => {});
  throw new Error('no answer in time');
}

function describeUser({ user }: Account): string {
  return user === null ? 'connection: it wants a user and a password' : `user '${user}' or its password`;
}

/** Each user may listen below its own prefix only, so that nobody reads answers meant for others. */
export function inboxPrefixOf(user: BusUser | null): string {
  return user === null ? '_INBOX' : `_INBOX.${user}`;
}

function options({ user, password }: Account, servers: string[]) {
  return {
    servers,
    ...(user === null ? {} : { user, pass: password ?? '' }),
    inboxPrefix: inboxPrefixOf(user),
    maxReconnectAttempts: -1,
    // A broker that restarts with old credentials and is corrected later must not need our restart.
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: RECONNECT_WAIT_MS,
    reconnectJitter: RECONNECT_JITTER_MS,
    reconnectJitterTLS: RECONNECT_JITTER_MS,
    pingInterval: PING_EVERY_MS,
    maxPingOut: MAX_UNANSWERED_PINGS,
    // Capturing a stack for every request costs more than the request.
    noAsyncTraces: true,
  };
}
