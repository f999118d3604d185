import type { Msg } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import type { NatsLink } from '../connection/link.ts';
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
    ...{ main, isCluster, inboxPrefix: '_INBOX', manager: { streams, consumers: { add: async () => ({}), delete: async () => true } } },
    onRedeclare: () => () => {},
    retryWhileTransient: (_what: string, _budgetMs: number, action: () => Promise<unknown>) => action(),
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
