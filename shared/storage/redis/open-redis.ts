import { Redis, type RedisOptions } from 'ioredis';
import { SwitchyardError } from '../../errors/switchyard-error.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Cache } from '../cache.ts';
import { type Reachability, reachability } from '../reachability.ts';
import { redisCache } from './redis-cache.ts';
import { watchSilence } from './silence-watch.ts';

/** A start goes on without Redis after this. */
const OPEN_BUDGET_MS = 2_000;

/** Without data for so long while replies are outstanding the connection is dead. */
const SILENCE_MS = 2_000;

const CONNECT_TIMEOUT_MS = 2_000;
const KEEP_ALIVE_MS = 10_000;

/** Reconnect back-off: fast at first, for a restart, then once a second without end. */
const RECONNECT_STEP_MS = 50;
const RECONNECT_LONGEST_MS = 1_000;

export interface OpenRedisOptions {
  /** `redis://user:password@host:port/number`, or `rediss://` for TLS. User, password, port and number are optional. */
  url: string;
  log: Log;
  /** Lets several deployments share one Redis. Default: `switchyard:`. */
  keyPrefix?: string;
}

/**
 * Opens the cache in Redis. While Redis is unreachable every call rejects within a second. Also resolves without a reply, after 2 s and a warning.
 * @throws `config.invalid` for an invalid URL
 */
export async function openRedis({ url, log, keyPrefix = 'switchyard:' }: OpenRedisOptions): Promise<Cache> {
  const server = serverOf(url);
  const name = `Redis at ${server.host}:${server.port}/${server.db}`;
  const reached = reachability(log, name);
  const redis = new Redis({ ...server, ...behaviour, keyPrefix });
  listen(redis, reached);
  watchSilence(redis, SILENCE_MS);
  await firstConnection(redis, () => reached.lost(`no answer within ${OPEN_BUDGET_MS / 1_000} s`));
  return redisCache(redis, name);
}

function listen(redis: Redis, reached: Reachability): void {
  let reason: string | null = null;
  // Not the error: it may contain a command's arguments, such as the password.
  redis.on('error', (error: Error) => {
    reason = reasonOf(error);
  });
  // Also emitted without an error, when the server closes the connection.
  redis.on('close', () => {
    if (redis.status !== 'end') reached.lost(reason ?? 'it closed the connection'); // with `end` we closed it
    reason = null;
  });
  redis.on('ready', () => reached.found());
}

const behaviour = {
  // RESP2: a proxy may not support RESP3, and none of its features is used.
  protocol: 2,
  disableClientInfo: true,
  connectTimeout: CONNECT_TIMEOUT_MS,
  keepAlive: KEEP_ALIVE_MS,
  retryStrategy: (attempt) => Math.min(attempt * RECONNECT_STEP_MS, RECONNECT_LONGEST_MS),
  // After a failover the former primary is read-only.
  reconnectOnError: (error) => error.message.startsWith('READONLY'),
  // Commands fail while disconnected, and none that may have been applied is repeated: an increment would count twice.
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  // Redis is loading its data.
  maxLoadingRetryTime: RECONNECT_LONGEST_MS,
} satisfies RedisOptions;

async function firstConnection(redis: Redis, onTimeout: () => void): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => {
      onTimeout();
      resolve();
    }, OPEN_BUDGET_MS);
    redis.once('ready', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function serverOf(text: string) {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null) throw invalidUrl('it cannot be parsed; special characters in a password have to be percent-encoded, such as @ as %40');
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:') throw invalidUrl('it begins with neither redis:// nor rediss://');
  if (url.hostname === '') throw invalidUrl('it names no host');
  if (url.search !== '' || url.hash !== '') throw invalidUrl('it has parameters, and none are supported');
  const db = /^\/?(\d{0,4})$/.exec(url.pathname)?.[1];
  if (db === undefined) throw invalidUrl('its path is not the number of a database');
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || '6379'),
    db: Number(db || '0'),
    ...(url.username === '' ? {} : { username: decoded(url.username) }),
    ...(url.password === '' ? {} : { password: decoded(url.password) }),
    ...(url.protocol === 'rediss:' ? { tls: {} } : {}),
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw invalidUrl('its user or password has a % that encodes no character');
  }
}

function invalidUrl(why: string): SwitchyardError {
  return new SwitchyardError('config.invalid', `the URL of Redis (REDIS_URL) is not valid: ${why}`);
}

/** Without credentials. */
function reasonOf(error: Error): string {
  if (/^(WRONGPASS|ERR invalid password|ERR AUTH)/.test(error.message)) return 'it refuses the user or the password';
  if (error.message.startsWith('NOAUTH')) return 'it requires a password, and the URL has none';
  if (error.message.startsWith('NOPERM')) return 'it does not allow this user the commands that the cache needs';
  if (/DB index is out of range/i.test(error.message)) return 'it has no database with that number';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  if (code !== null) return error.message === '' ? code : `${code}: ${error.message}`;
  // `ERR unknown command 'X', with args beginning with: …`
  return error.message.replace(/, with args.*/s, '');
}
