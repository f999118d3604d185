import { createInbox, type NatsConnection, TimeoutError } from '@nats-io/transport-node';
import { expect, it } from 'vitest';
import { openEchoSocket } from '#shared/http/test-support/echo-socket.ts';
import { Requests } from './requests.ts';

type OnMessage = (error: null, message: object) => void;

/** A connection whose broker is `send`. */
function connectionTo(send: (reply: string) => void): { connection: NatsConnection; onReply: (subject: string) => void } {
  let onMessage: OnMessage = () => {};
  const connection = {
    subscribe: (_: string, { callback }: { callback: OnMessage }) => {
      onMessage = callback;
    },
    publish: (_subject: string, _payload: Uint8Array, { reply }: { reply: string }) => send(reply),
  };
  return { connection: connection as unknown as NatsConnection, onReply: (subject) => onMessage(null, { subject, data: Buffer.from('pong') }) };
}

it('a reply that arrived while the process was paused beyond the limit is read', async () => {
  const { socket, pauseUntil } = await openEchoSocket();
  const { connection, onReply } = connectionTo((reply) => void socket.write(reply));
  socket.on('data', (bytes) => onReply(String(bytes)));
  const requests = new Requests(connection, createInbox());

  const reply = requests.ask('ping', '', { timeoutMs: 1 });
  pauseUntil(performance.now() + 1);

  expect(String((await reply).data)).toBe('pong');
});

it('a request without a reply is over, and a late reply is not taken for that of the next request', async () => {
  const replies: string[] = [];
  const { connection, onReply } = connectionTo((reply) => void replies.push(reply));
  const requests = new Requests(connection, createInbox());
  await expect(requests.ask('ping', '', { timeoutMs: 1 })).rejects.toThrow(TimeoutError);

  const next = requests.ask('ping', '', { timeoutMs: 60_000 });
  for (const reply of replies) onReply(reply);

  expect(String((await next).data)).toBe('pong');
  expect(replies).toHaveLength(2);
});
