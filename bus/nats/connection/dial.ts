import { setTimeout as delay } from 'node:timers/promises';
import type { NatsConnection } from '@nats-io/transport-node';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { pauseFor } from '../../pause.ts';
import type { BusUser } from '../../subjects.ts';
import { clusterPings, pings } from '../pings.ts';
import { isRefusal } from './broker-errors.ts';
import { type CorkedOptions, connectCorked } from './corked-transport.ts';
import { leastRecentlyDialled } from './next-server.ts';
import { refusedCredentials } from './refused-credentials.ts';

/** Per attempt. */
const DIAL_TIMEOUT_MS = 3_000;
const DIAL_AGAIN_MS = 200;
/** After a refusal, for the other servers: passwords may be changed one server after the other. */
const OTHERS_MS = 1_000;
/** A restarted broker is back within tenths of a second; jitter, since all processes reconnect at once. */
const RECONNECT_WAIT_MS = 100;
const RECONNECT_JITTER_MS = 200;

export interface Account {
  /** One or several `nats://host:port`, or `tls://host:port`, separated by commas. */
  servers: string;
  user: BusUser | null;
  password: string | null;
  /** The broker does not send a connection what was published on it: readers in this process get that in memory. Absent: it does. */
  isLocal?: boolean;
}

/** @throws `config.invalid` without an address, or for one with credentials */
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
 * Connects, and from then on reconnects forever.
 * @throws `service.unreachable` when the credentials are refused, or the broker can't be reached within the budget
 */
export async function dial(account: Account, name: string, budgetMs: number): Promise<NatsConnection> {
  const servers = addressesOf(account.servers);
  const untilMs = performance.now() + budgetMs;
  let former: unknown = null;
  for (;;) {
    const leftMs = Math.max(1, untilMs - performance.now());
    try {
      return await attempt(leftMs, { ...options(account, servers), name, timeout: Math.min(DIAL_TIMEOUT_MS, leftMs) });
    } catch (error) {
      if (isRefusal(error)) throw refusedCredentials(account.user, servers.join(', '), error);
      if (performance.now() + DIAL_AGAIN_MS >= untilMs) {
        // The end of the budget cuts the last attempt short: the one before says why.
        const cause = leftMs < DIAL_TIMEOUT_MS ? (former ?? error) : error;
        throw new SwitchyardError('service.unreachable', `NATS at ${servers.join(', ')} could not be reached within ${budgetMs / 1_000} s`, { cause });
      }
      former = error;
      await delay(DIAL_AGAIN_MS); // refed: without a socket nothing else keeps the process alive
    }
  }
}

/**
 * DNS look-ups have no time limit. A late connection is closed.
 * @throws a server's refusal, unless another one accepts soon: the error of a server that is not there, as of one that the broker names, must not hide it
 */
async function attempt(ms: number, dialled: CorkedOptions): Promise<NatsConnection> {
  let refusal: Error | null = null;
  let onRefused = () => {};
  const refused = new Promise<void>((resolve) => {
    onRefused = () => void pauseFor(OTHERS_MS).then(resolve);
  });
  const onRefusal = (error: Error) => {
    refusal ??= error;
    onRefused();
  };
  const connecting = connectCorked({ ...dialled, onRefusal });
  const first = await Promise.race([connecting, refused, pauseFor(ms)]).catch((error: unknown) => {
    throw refusal ?? error;
  });
  if (first !== undefined) return first;
  connecting.then((late) => late.close()).catch(() => {});
  throw refusal ?? new Error('no answer in time');
}

/** A prefix per user, so that none can read another's replies. */
export function inboxPrefixOf(user: BusUser | null): string {
  return user === null ? '_INBOX' : `_INBOX.${user}`;
}

function options({ user, password, isLocal = false }: Account, servers: string[]) {
  const isCluster = servers.length > 1;
  const { everyMs, max } = isCluster ? clusterPings : pings;
  return {
    servers,
    ...(user === null ? {} : { user, pass: password ?? '' }),
    inboxPrefix: inboxPrefixOf(user),
    noEcho: isLocal,
    // The library takes `tls://` for a spelling of `nats://`: a server without TLS would get the password in plain text.
    ...(servers.some((server) => /^tls:/i.test(server)) ? { tls: {} } : {}),
    maxReconnectAttempts: -1,
    // Credentials corrected at the broker must not require our restart.
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: RECONNECT_WAIT_MS,
    reconnectJitter: RECONNECT_JITTER_MS,
    reconnectJitterTLS: RECONNECT_JITTER_MS,
    ...(isCluster ? { reconnectToServer: leastRecentlyDialled } : {}),
    pingInterval: everyMs,
    maxPingOut: max,
    // Capturing a stack for every request costs more than the request.
    noAsyncTraces: true,
  };
}
