import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Msg, PermissionViolationError, type PublishOptions } from '@nats-io/transport-node';
import { describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { addresses } from '../../subjects.ts';
import type { NatsLink } from '../connection/link.ts';
import { Dispatcher, dispatchSubjectOf, readDispatch } from './dispatcher.ts';

const NOW_MS = 1_700_000_000_000;

/** A dispatcher over a connection that records its publishes. */
function open({ isUp = true, pong = () => Promise.resolve() }: { isUp?: boolean; pong?: () => Promise<void> } = {}) {
  const published: { subject: string; text: string; reply: string }[] = [];
  const subscribed = new Map<string, (error: Error | null, message: Msg) => void>();
  const session = { number: 1 as number | null };
  const violations: ((violation: PermissionViolationError) => void)[] = [];
  const main = {
    publish: (subject: string, bytes: Uint8Array, options?: PublishOptions) => {
      published.push({ subject, text: Buffer.from(bytes).toString(), reply: options?.reply ?? '' });
    },
    subscribe: (pattern: string, { callback }: { callback: (error: Error | null, message: Msg) => void }) => {
      subscribed.set(pattern, callback);
    },
    flush: () => pong(),
  };
  const link = {
    ...{ main, isUp, inboxPrefix: '_INBOX_gateway' },
    get sessionNumber() {
      return session.number;
    },
    onPermissionViolation: (handler: (typeof violations)[number]) => violations.push(handler),
  } as unknown as NatsLink;
  const dispatcher = new Dispatcher({ link, clock: { ...systemClock, nowMs: () => NOW_MS }, log: silentLog });
  const refused: string[] = [];
  dispatcher.onRefused((messageId) => refused.push(messageId));
  const violate = (operation: 'publish' | 'subscription', subject: string) => {
    for (const handler of violations) handler(new PermissionViolationError('Permissions Violation', operation, subject));
  };
  const deliver = (subject: string) => [...subscribed.values()][0]?.(null, { subject } as Msg);
  return { dispatcher, published, refused, subscribed, session, violate, deliver };
}

describe('dispatches at the broker', () => {
  it('are published to the consumers of their kind, with the item’s id and the time', () => {
    const { dispatcher, published } = open();
    dispatcher.dispatch('router.call', 'gen-1', Buffer.from('body'));

    expect(published).toEqual([expect.objectContaining({ subject: addresses.dispatchedCalls.pattern, text: 'body' })]);
    expect(published[0]?.reply).toMatch(/^_INBOX_gateway\./);
    expect(readDispatch(published[0]?.reply)).toEqual({ messageId: 'gen-1', publisher: expect.stringMatching(/^\w{22}$/), publishedAtMs: NOW_MS });
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
    expect(dispatchSubjectOf('router.turn')).toBe(addresses.dispatchedTurns.pattern);
    expect(dispatchSubjectOf('delivery')).toBeNull();
    expect(dispatchSubjectOf('tool')).toBeNull();
  });

  it('DESIGN 6: are refused at once by a broker that does not permit their subject, until there is another connection', async () => {
    let pong = () => {};
    const { dispatcher, published, refused, session, violate } = open({ pong: () => new Promise((resolve) => (pong = resolve)) });
    dispatcher.dispatch('router.turn', 'trn_1-1', Buffer.from('body'));
    dispatcher.dispatch('router.turn', 'trn_2-1', Buffer.from('body'));
    await nextTurn();
    violate('subscription', addresses.dispatchedTurns.pattern);
    violate('publish', addresses.dispatchedCalls.pattern);
    expect(refused).toEqual([]);
    violate('publish', addresses.dispatchedTurns.pattern);
    expect(refused).toEqual(['trn_1-1', 'trn_2-1']);
    pong();
    dispatcher.dispatch('router.turn', 'trn_3-1', Buffer.from('body'));
    await nextTurn();
    expect([refused.length, published.length]).toEqual([3, 2]);
    session.number = 2;
    dispatcher.dispatch('router.turn', 'trn_4-1', Buffer.from('body'));
    await nextTurn();
    expect([refused.length, published.length]).toEqual([3, 3]);
  });

  it('are permitted once the broker has replied behind the first: a later violation is of another publish', async () => {
    const { dispatcher, refused, violate } = open();
    dispatcher.dispatch('router.turn', 'trn_1-1', Buffer.from('body'));
    for (let turn = 0; turn < 3; turn += 1) await nextTurn();
    violate('publish', addresses.dispatchedTurns.pattern);
    expect(refused).toEqual([]);
  });

  it('DESIGN 6: are reported as stored by the worker that has no free slot, to their publisher alone', () => {
    const { dispatcher, published, subscribed } = open();
    const worker = open();
    dispatcher.dispatch('router.turn', 'trn_1-1', Buffer.from('body'));
    const stored: string[] = [];
    expect(subscribed.size).toBe(1);
    dispatcher.onStored((messageId) => stored.push(messageId));
    worker.dispatcher.reportStored(readDispatch(published[0]?.reply)?.publisher ?? '', 'trn_1-1');
    const report = worker.published[0];
    subscribed.get(report?.subject ?? '')?.(null, { string: () => report?.text } as unknown as Msg);
    expect(stored).toEqual(['trn_1-1']);
    dispatcher.reportStored(null, 'trn_2-1');
    expect(stored).toEqual(['trn_1-1', 'trn_2-1']);
  });
});
