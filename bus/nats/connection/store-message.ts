import { JetStreamApiError } from '@nats-io/jetstream';
import { headers, type MsgHdrs } from '@nats-io/transport-node';
import { z } from 'zod';
import { InProcessError } from './broker-errors.ts';
import type { Requests } from './requests.ts';
import { MESSAGE_ID_HEADER, toWireId } from './wire-id.ts';

const IN_PROCESS = 10158;

/** The broker's ack; with `error` the sequence means nothing. */
const reply = z.object({
  error: z.object({ code: z.number(), err_code: z.number(), description: z.string() }).optional(),
  seq: z.number().optional(),
  duplicate: z.boolean().default(false),
});

export interface MessageToStore {
  subject: string;
  messageId: string;
  bytes: Uint8Array;
  extraHeaders?: MsgHdrs | undefined;
  /** Above 0: under another id of the same message. */
  again?: number;
}

/** Stores a message in its subject's stream, deduplicated by id. @throws `InProcessError`, `JetStreamApiError`, and as `Requests.ask` */
export async function storeMessage(
  requests: Requests,
  { subject, messageId, bytes, extraHeaders = headers(), again = 0 }: MessageToStore,
  timeoutMs: number,
): Promise<{ sequence: number; duplicate: boolean }> {
  extraHeaders.set(MESSAGE_ID_HEADER, toWireId(messageId, again));
  const { error, seq, duplicate } = reply.parse((await requests.ask(subject, bytes, { timeoutMs, headers: extraHeaders })).json());
  // nats-server 2.10.14 to 2.10.29 answers so; from 2.11 on it is an error.
  if (error?.err_code === IN_PROCESS || (duplicate && seq === 0)) throw new InProcessError();
  if (error !== undefined) throw new JetStreamApiError(error);
  if (seq === undefined) throw new Error('the broker answered without a sequence');
  return { sequence: seq, duplicate };
}
