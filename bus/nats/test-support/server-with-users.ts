import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { type Log, silentLog } from '#shared/telemetry/log.ts';
import type { Bus } from '../../bus.ts';
import type { BusUser } from '../../subjects.ts';
import { inboxPrefixOf } from '../connection/dial.ts';
import { openNatsBus } from '../nats-bus.ts';
import { busUsers } from '../permissions.ts';
import { natsServerConfig, passwordVariableOf } from '../server-config.ts';
import type { NatsSettings } from '../settings.ts';

/** Why a test drops an item, which is logged as an error. */
export const DROPPED = 'dropped by the test';

export const passwordOf = (user: BusUser) => `password-of-${user}`;

/** A wildcard stands for any token. */
export const filled = (pattern: string) => pattern.replaceAll('*', 'x1').replaceAll('>', 'x1');

/** A broker with the users and permissions of a deployment. */
export interface ServerWithUsers {
  readonly url: string;
  /** What the drivers have logged as warnings and errors. A test that expects some takes them out; others fail by them. */
  readonly complaints: string[];
  open(user: BusUser, settings?: Partial<NatsSettings>, options?: { isLocal: boolean }): Promise<Bus>;
  /** A connection without the driver, as of an attacker in that process. */
  enter(user: BusUser): Promise<NatsConnection>;
  /** Whether the broker accepts the publish; it reaches no subscriber. */
  mayPublish(user: BusUser, subject: string): Promise<boolean>;
  maySubscribe(user: BusUser, pattern: string): Promise<boolean>;
}

/** Starts a broker with this configuration. */
type StartServer = (options: { config: string }) => Promise<{ url: string; close(): Promise<void> }>;

/** One for a group of tests, so that groups share no messages. @param without lines of its configuration with this text are left out */
export function useServerWithUsers(startServer: StartServer, without: string | null = null): ServerWithUsers {
  let server: Awaited<ReturnType<StartServer>>;
  const opened: { close(): Promise<void> }[] = [];
  const complaints: string[] = [];

  beforeAll(async () => {
    // The server would read them from its environment.
    const config = busUsers.reduce((text, user) => text.replaceAll(`$${passwordVariableOf(user)}`, JSON.stringify(passwordOf(user))), natsServerConfig());
    const lines = config.split('\n').filter((line) => without === null || !line.includes(without));
    server = await startServer({ config: lines.join('\n') });
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((one) => one.close()));
    // Some refusals of the broker are in the driver's log only.
    expect(complaints.splice(0)).toEqual([]);
  });
  afterAll(() => server.close());

  function complain(fields: Record<string, unknown>, message: string): void {
    if (fields.reason !== DROPPED) complaints.push(`${message}: ${fields.err instanceof Error ? fields.err.message : ''}`);
  }

  async function open(user: BusUser, settings: Partial<NatsSettings> = {}, { isLocal } = { isLocal: false }): Promise<Bus> {
    const log: Log = { ...silentLog, warn: complain, error: complain };
    const bus = await openNatsBus({ servers: server.url, user, password: passwordOf(user), isLocal, log, settings });
    opened.push(bus);
    return bus;
  }

  async function enter(user: BusUser): Promise<NatsConnection> {
    const connection = await connect({ servers: server.url, user, pass: passwordOf(user), inboxPrefix: inboxPrefixOf(user) });
    opened.push(connection);
    return connection;
  }

  async function mayPublish(user: BusUser, subject: string): Promise<boolean> {
    const connection = await enter(user);
    const refused = refusalsOf(connection);
    connection.publish(subject, '{}');
    await connection.flush();
    // In order: a refusal comes before the PONG of the second flush.
    await connection.flush();
    return refused.length === 0;
  }

  async function maySubscribe(user: BusUser, pattern: string): Promise<boolean> {
    const connection = await enter(user);
    let refused = false;
    connection.subscribe(pattern, {
      callback: (error) => {
        refused ||= error !== null;
      },
    });
    await connection.flush();
    await connection.flush();
    return !refused;
  }

  return {
    get url() {
      return server.url;
    },
    complaints,
    open,
    enter,
    mayPublish,
    maySubscribe,
  };
}

/** Refusals from now on. */
export function refusalsOf(connection: NatsConnection): string[] {
  const refused: string[] = [];
  void (async () => {
    for await (const status of connection.status()) {
      if (status.type === 'error') refused.push(status.error.message);
    }
  })();
  return refused;
}
