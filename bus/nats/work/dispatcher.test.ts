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
  let onMessage = (_error: Error | null, _message: Msg) => {};
  const main = {
    publish: (subject: string, bytes: Uint8Array, options?: PublishOptions) => {
      published.push({ subject, text: Buffer.from(bytes).toString(), reply: options?.reply ?? '' });
    },
    subscribe: (_pattern: string, { callback }: { callback: typeof onMessage }) => {
      onMessage = callback;
    },
  };
  const link = { main, isUp, inboxPrefix: '_INBOX_gateway' } as unknown as NatsLink;
  const dispatcher = new Dispatcher({ link, clock: { ...systemClock, nowMs: () => NOW_MS }, log: silentLog });
  const refused: string[] = [];
  dispatcher.onRefused((messageId) => refused.push(messageId));
  return { dispatcher, published, refused, deliver: (subject: string) => onMessage(null, { subject } as Msg) };
}

describe('dispatches at the broker', () => {
  it('are published to the consumers of their kind, with the item’s id and the time', () => {
    const { dispatcher, published } = open();
    dispatcher.dispatch('router.call', 'gen-1', Buffer.from('body'));

    expect(published).toEqual([expect.objectContaining({ subject: addresses.dispatchedCalls.pattern, text: 'body' })]);
    expect(published[0]?.reply).toMatch(/^_INBOX_gateway\./);
    expect(readDispatch(published[0]?.reply)).toEqual({ messageId: 'gen-1', publishedAtMs: NOW_MS });
  });

  it('are refused when the broker reports no responders', () => {
    const { dispatcher, published, refused, deliver } = open();
    dispatcher.dispatch('router.call', 'gen-1', Buffer.from('body'));
    deliver(published[0]?.reply ?? '');

    expect(refused).toEqual(['gen-1']);
  });

  it('are refused while the broker is away, after the publisher’s tick', async () => {
    const { dispatcher, published, refused } = open({ isUp: false });
    dispatcher.dispatch('router.call', 'gen-1', Buffer.from('body'));

    expect(refused).toEqual([]);
    await nextTurn();
    expect(refused).toEqual(['gen-1']);
    expect(published).toEqual([]);
  });

  it('are not parsed from another reply subject', () => {
    for (const reply of [undefined, '', 'gen-1', 'x.y.gen-1', '_INBOX.1', '_INBOX.12.a b']) expect(readDispatch(reply)).toBeNull();
  });

  it('are not possible for kinds whose publishers do not wait', () => {
    expect(dispatchSubjectOf('router.turn')).toBeNull();
    expect(dispatchSubjectOf('tool')).toBeNull();
  });
});
