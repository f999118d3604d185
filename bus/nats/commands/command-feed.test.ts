import { type Msg, TimeoutError } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { Consumers, type ConsumersOptions } from '../connection/consumers.ts';
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
  const call = (_what: string, _budgetMs: number, action: () => Promise<unknown>) => action();
  const link = {
    ...{ main, isCluster, inboxPrefix: '_INBOX', manager: { streams }, changes: { consumers: { delete: async () => true } } },
    consumers: { open: async () => ({ name: 'r-1' }) },
    streams: { onRedeclare: () => () => {} },
    retries: { run: call, runWithin: call },
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
  { what: 'a cluster', isCluster: true },
  { what: 'a single server', isCluster: false },
])('$what that did not answer is asked for another consumer, and what it may have created is removed', async ({ isCluster }) => {
  const [names, removed]: [string[], string[]] = [[], []];
  const consumers = {
    add: (_: string, { name }: { name: string }) => {
      names.push(name);
      return names.length === 1 ? Promise.reject(new TimeoutError()) : Promise.resolve({ name });
    },
    delete: async (_: string, name: string) => void removed.push(name),
  };
  const refused = { error: { code: 400, err_code: 10056, description: 'stream name in subject does not match request' } };
  const main = { subscribe: () => ({ isClosed: () => false, drain: async () => {}, unsubscribe: () => {} }), publish: () => {} };
  const retries = new Retries({ address: 'nats://there', isCluster, isUp: () => true, up: () => new Promise(() => {}), redeclare: async () => {} });
  const requests = { ask: async () => ({ json: () => refused }) };
  const link = {
    ...{ main, isCluster, inboxPrefix: '_INBOX', retries, changes: { consumers } },
    ...{ streams: { onRedeclare: () => () => {} }, consumers: new Consumers({ isCluster, manager: { consumers }, requests } as unknown as ConsumersOptions) },
  };
  const { signal } = new AbortController();
  const options = { subject: 'cmd.1', after: REACHED, session: signal, until: signal, budgetMs: 8_000, log: silentLog };
  const opening = CommandFeed.open({ ...options, link: link as unknown as NatsLink });
  await vi.advanceTimersByTimeAsync(500);
  const feed = await opening;

  expect(new Set(names).size).toBe(2);
  expect(removed).toEqual(names.slice(0, 1));
  await feed.close();
  expect(removed).toEqual(names);
});
