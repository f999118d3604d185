import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { finishWithin } from '#shared/http-server/sse-writer.ts';
import type { GatewayLimits } from '../limits.ts';
import { retryHeaders } from '../plugins/error-reply.ts';

/** A non-streamed response of a worker; `body` is the client's JSON. */
export interface WholeResponse {
  status: number;
  headers: Record<string, string>;
  body: Uint8Array;
}

const errorFacts = z.object({ error: z.object({ code: z.number(), type: z.string(), metadata: z.record(z.string(), z.unknown()).optional() }) });

/** Parses only bodies of 429 and 503, for their headers. A status outside 200 to 599 becomes 500. */
export function wholeResponse(givenStatus: number, body: Uint8Array): WholeResponse {
  const status = givenStatus >= 200 && givenStatus <= 599 ? givenStatus : 500;
  const headers = { 'content-type': 'application/json' };
  if (status !== 429 && status !== 503) return { status, headers, body };
  const facts = errorFacts.safeParse(parseJson(body));
  return { status, headers: facts.success ? { ...headers, ...retryHeaders(facts.data) } : headers, body };
}

/** Null: the relay has taken over the socket. */
export function sendWhole(reply: FastifyReply, response: WholeResponse | null, limits: GatewayLimits): FastifyReply | undefined {
  if (response === null) {
    reply.hijack();
    return undefined;
  }
  reply.code(response.status).headers(response.headers).send(response.body);
  finishWithin(reply.raw, limits.finishMs);
  return reply;
}

function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'));
  } catch {
    return null;
  }
}
