import type { Msg, MsgHdrs, NatsConnection } from '@nats-io/transport-node';
import type { Answer } from './model-stream.ts';

export interface Sent {
  subject: string;
  payload: Uint8Array;
  headers: MsgHdrs | undefined;
  /** Delivers the reply; null: no responders. */
  reply(answer: Answer | null): void;
}

type OnMessage = (error: null, message: Msg) => void;

const NO_RESPONDERS = { code: 503 };

/** What bus/nats/connection/requests.ts uses of a connection: one subscription to the replies, and publishes that ask for one. */
export function simulatedConnection(send: (sent: Sent) => void): NatsConnection {
  let onMessage: OnMessage = () => {};
  const connection = {
    subscribe: (_: string, { callback }: { callback: OnMessage }) => {
      onMessage = callback;
    },
    publish: (subject: string, payload: Uint8Array, { reply: inbox, headers }: { reply: string; headers?: MsgHdrs }) =>
      send({ subject, payload, headers, reply: (answer) => onMessage(null, messageOf(inbox, answer)) }),
  };
  return connection as unknown as NatsConnection;
}

function messageOf(subject: string, answer: Answer | null): Msg {
  const message = answer === null ? { subject, data: new Uint8Array(), headers: NO_RESPONDERS } : { subject, data: new Uint8Array(1), json: () => answer };
  return message as unknown as Msg;
}
