import type { Msg } from '@nats-io/transport-node';
import { expect, it } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import type { NatsLink } from './link.ts';
import { Pull } from './pull.ts';

/** A pull at a broker whose reports of requests are made by `expire`. */
function open() {
  const replies: string[] = [];
  let expired = 0;
  let receive = (_error: Error | null, _message: Msg) => {};
  const main = {
    subscribe: (_: string, { callback }: { callback: typeof receive }) => {
      receive = callback;
      return { isClosed: () => true };
    },
    publish: (_subject: string, _body: string, { reply }: { reply: string }) => void replies.push(reply),
  };
  const link = { main, isCluster: false, inboxPrefix: '_INBOX', streams: { onRedeclare: () => () => {} } } as unknown as NatsLink;
  const onExpired = () => {
    expired += 1;
  };
  const on = { onMessage: () => {}, onExpired, onBroken: () => {} };
  const pull = new Pull({ link, stream: 'WORK', consumer: 'tool', log: silentLog, session: new AbortController().signal, ...on });
  const expire = (subject: string | undefined, left: number) =>
    receive(null, { subject, headers: { code: 408, get: () => String(left), description: 'Request Timeout' } } as unknown as Msg);
  return { pull, replies, expire, expiredOf: () => expired };
}

it('counts what the broker did not serve of a request that is over', async () => {
  const { pull, replies, expire, expiredOf } = open();
  pull.ask(5);
  expire(replies[0], 3);
  expect([pull.asked, expiredOf()]).toEqual([2, 1]);
  await pull.drain();
});

it('passes over a late report of a request that was forgotten: what is outstanding since stays outstanding', async () => {
  const { pull, replies, expire, expiredOf } = open();
  pull.ask(9, { expiresMs: 10 });
  pull.forget();
  pull.ask(1);
  expire(replies[0], 8);
  expect([pull.asked, expiredOf()]).toEqual([1, 0]);
  expire(replies[1], 1);
  expect([pull.asked, expiredOf()]).toEqual([0, 1]);
  await pull.drain();
});
