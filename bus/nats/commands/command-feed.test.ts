import { type Msg, TimeoutError } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import type { NatsLink } from '../connection/link.ts';
import { Retries } from '../connection/retries.ts';
import { CommandFeed } from './command-feed.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const REACHED = 7;

/** A feed whose consumer is there, with heartbeats, and delivers nothing. @param lastSequence of its partition, in the log; null: it has no command */
async function idleFeed({ lastSequence, isCluster }: { lastSequence: number | null; isCluster: boolean }): Promise<CommandFeed> {
  let receive = (_error: Error | null, _message: Msg) => {};
  const main = {
    subscribe: (_: string, { callback }: { callback: typeof receive }) => {
      receive = callback;
      return { isClosed: () => false, drain: async () => {}, unsubscribe: () => {} };
    },
    publish: () => {},
  };
  const streams = { getMessage: async () => (lastSequence === null ? null : { seq: lastSequence }) };
  const link = {
    ...{ main, isCluster, inboxPrefix: '_INBOX', manager: { streams }, changes: { consumers: { add: async () => ({}), delete: async () => true } } },
    streams: { onRedeclare: () => () => {} },
    retries: { run: (_what: string, _budgetMs: number, call: () => Promise<unknown>) => call() },
  } as unknown as NatsLink;
  const { signal } = new AbortController();
  const feed = await CommandFeed.open({ link, subject: 'cmd.1', after: REACHED, session: signal, until: signal, budgetMs: 8_000, log: silentLog });
  setInterval(() => receive(null, { headers: { code: 100 } } as unknown as Msg), 1_000);
  return feed;
}

describe('an idle feed', () => {
  it.each([
    { what: 'breaks, in a cluster, when the log has a command that it was not sent', lastSequence: REACHED + 1, isCluster: true, isBroken: true },
    { what: 'goes on when the last command is the one that it has reached', lastSequence: REACHED, isCluster: true, isBroken: false },
    { what: 'goes on when its partition has no command', lastSequence: null, isCluster: true, isBroken: false },
    { what: 'does not ask a single server', lastSequence: REACHED + 1, isCluster: false, isBroken: false },
  ])('$what', async ({ lastSequence, isCluster, isBroken }) => {
    const feed = await idleFeed({ lastSequence, isCluster });

    await vi.advanceTimersByTimeAsync(4_000);
    expect(feed.isBroken).toBe(false);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(feed.isBroken).toBe(isBroken);
    await feed.close();
  });
});

it.each([
  { what: 'a cluster that did not answer is asked for a consumer of another name, and what it may have created is removed', isCluster: true, created: 2 },
  { what: 'a single server that did not answer is asked for the same again', isCluster: false, created: 1 },
])('$what', async ({ isCluster, created }) => {
  const [names, removed]: [string[], string[]] = [[], []];
  const consumers = {
    add: (_: string, { name }: { name: string }) => {
      names.push(name);
      return names.length === 1 ? Promise.reject(new TimeoutError()) : Promise.resolve({});
    },
    delete: async (_: string, name: string) => void removed.push(name),
  };
  const main = { subscribe: () => ({ isClosed: () => false, drain: async () => {}, unsubscribe: () => {} }), publish: () => {} };
  const retries = new Retries({ address: 'nats://there', isCluster, isUp: () => true, up: () => new Promise(() => {}), redeclare: async () => {} });
  const link = { ...{ main, isCluster, inboxPrefix: '_INBOX', retries }, streams: { onRedeclare: () => () => {} }, changes: { consumers } };
  const { signal } = new AbortController();
  const options = { subject: 'cmd.1', after: REACHED, session: signal, until: signal, budgetMs: 8_000, log: silentLog };
  const opening = CommandFeed.open({ ...options, link: link as unknown as NatsLink });
  await vi.advanceTimersByTimeAsync(500);
  const feed = await opening;

  expect(new Set(names).size).toBe(created);
  expect(removed).toEqual(isCluster ? names.slice(0, 1) : []);
  await feed.close();
  expect(removed).toEqual([...new Set(names)]);
});
