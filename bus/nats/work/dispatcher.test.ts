import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Msg, PublishOptions } from '@nats-io/transport-node';
import { describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { addresses } from '../../subjects.ts';
import type { NatsLink } from '../connection/link.ts';
import { Dispatcher, dispatchSubjectOf, readDispatch } from './dispatcher.ts';

const NOW_MS = 1_700_000_000_000;

/** A dispatcher over a connection that records its publishes. */
function open({ isUp = true } = {}) {
  const published: { subject: string; text: string; reply: string }[] = [];
  let hear = (_error: Error | null, _message: Msg) => {};
  const main = {
    publish: (subject: string, bytes: Uint8Array, options?: PublishOptions) => {
      published.push({ subject, text: Buffer.from(bytes).toString(), reply: options?.reply ?? '' });
    },
    subscribe: (_pattern: string, { callback }: { callback: typeof hear }) => {
      hear = callback;
    },
  };
  const link = { main, isUp, inboxPrefix: '_INBOX_gateway' } as unknown as NatsLink;
  const offers = new Dispatcher({ link, clock: { ...systemClock, nowMs: () => NOW_MS }, log: silentLog });
  const refused: string[] = [];
  offers.onRefused((messageId) => refused.push(messageId));
  return { offers, published, refused, hear: (subject: string) => hear(null, { subject } as Msg) };
}

describe('offers at the broker', () => {
  it('are made to the consumers of their kind, and say which item it is and when it was sent', () => {
    const { offers, published } = open();
    offers.dispatch('router.call', 'gen-1', 'body');

    expect(published).toEqual([expect.objectContaining({ subject: addresses.dispatchedCalls.pattern, text: 'body' })]);
    expect(published[0]?.reply).toMatch(/^_INBOX_gateway\./);
    expect(readDispatch(published[0]?.reply)).toEqual({ messageId: 'gen-1', publishedAtMs: NOW_MS });
  });

  it('are refused when the broker says that nobody listens', () => {
    const { offers, published, refused, hear } = open();
    offers.dispatch('router.call', 'gen-1', 'body');
    hear(published[0]?.reply ?? '');

    expect(refused).toEqual(['gen-1']);
  });

  it('are refused while the broker is away, once whoever offers is done', async () => {
    const { offers, published, refused } = open({ isUp: false });
    offers.dispatch('router.call', 'gen-1', 'body');

    expect(refused).toEqual([]);
    await nextTurn();
    expect(refused).toEqual(['gen-1']);
    expect(published).toEqual([]);
  });

  it('are not read out of what is none', () => {
    for (const reply of [undefined, '', 'gen-1', 'x.y.gen-1', '_INBOX.1', '_INBOX.12.a b']) expect(readDispatch(reply)).toBeNull();
  });

  it('are not made of kinds whose publishers do not wait', () => {
    expect(dispatchSubjectOf('router.turn')).toBeNull();
    expect(dispatchSubjectOf('tool')).toBeNull();
  });
});
