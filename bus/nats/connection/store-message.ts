import { JetStreamApiError } from '@nats-io/jetstream';
import { headers, type MsgHdrs } from '@nats-io/transport-node';
import { z } from 'zod';
import type { Requests } from './requests.ts';
import { MESSAGE_ID_HEADER, toWireId } from './wire-id.ts';

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
  timeoutMs: number;
  extraHeaders?: MsgHdrs | undefined;
}

/** Stores a message in its subject's stream, deduplicated by id. @throws `JetStreamApiError`, and as `Requests.ask` */
export async function storeMessage(
  requests: Requests,
  { subject, messageId, bytes, timeoutMs, extraHeaders = headers() }: MessageToStore,
): Promise<{ sequence: number; duplicate: boolean }> {
  extraHeaders.set(MESSAGE_ID_HEADER, toWireId(messageId));
  const { error, seq, duplicate } = reply.parse((await requests.ask(subject, bytes, { timeoutMs, headers: extraHeaders })).json());
  if (error !== undefined) throw new JetStreamApiError(error);
  if (seq === undefined) throw new Error('the broker answered without a sequence');
  return { sequence: seq, duplicate };
}
