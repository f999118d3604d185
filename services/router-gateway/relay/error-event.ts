import { z } from 'zod';
import type { RouterErrorBody } from '#shared/contracts/router/chat-completion.ts';
import { jsonIn } from '#shared/json-in.ts';
import type { Surface } from '#shared/surfaces/surface.ts';
import type { RelayedCall } from './relay.ts';

const PROVIDER = 'switchyard';

const errorBody = z.object({ error: z.object({ code: z.number(), message: z.string(), type: z.string(), param: z.string() }) });

/** The events that end a stream after its headers; nothing may follow. @param written number of events before them, of a surface that numbers them */
export function errorEvent({ callId, model, failures }: RelayedCall, surface: Surface, nowMs: number, body: RouterErrorBody, written: number): string {
  return surface.errorEvent(body, { id: callId, created: Math.floor(nowMs / 1_000), model, provider: PROVIDER, failures }, written);
}

/** As a worker sent it. Null: it is none. */
export function errorBodyIn(bytes: Uint8Array): RouterErrorBody | null {
  return errorBody.safeParse(jsonIn(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'))).data ?? null;
}
