import { z } from 'zod';
import { chatRequest } from '#shared/contracts/router/chat-request.ts';
import { isPlainChatRequest } from '#shared/contracts/router/plain-chat-request.ts';

/**
 * One model call on `work.router.call` or `work.router.turn`; its message id is the call id. No credential travels: `keyId` names
 * the key that asked, the worker resolves what it needs by itself.
 */
export const routerCall = z.object({
  v: z.literal(1),
  /** The generation id of a client's call; the effect id of an actor's call. */
  callId: z.string(),
  /** Frames go to `tok.<origin>.<callId>`. */
  origin: z.string(),
  /** `frames`: every chunk as it comes. `body`: one terminal frame with the whole answer. `none`: no frame, only the command of `reply`. */
  want: z.enum(['frames', 'body', 'none']),
  /** Epoch milliseconds after which the call is not begun, and ends with `router.timeout` if it runs. */
  deadlineAtMs: z.number(),
  createdAtMs: z.number(),
  /** Whether the call goes on when nobody reads its frames any more; the calls of others end with their last reader. */
  detached: z.boolean().default(false),
  /** Whether the item may have been on the bus before, as after a take-over: its worker looks at the effect's row first. */
  republished: z.boolean().default(false),
  /** Id of the calling key in the router's configuration. */
  keyId: z.string(),
  /** W3C trace context of the caller; null when it has none. */
  traceparent: z.string().nullable(),
  /** Ceiling on the tokens that the call may bring, lowered further to what an endpoint gives; null for calls without one. */
  maxTokens: z.number().int().min(1).nullable(),
  request: chatRequest,
  /** Where the result goes as a command, for calls of actors; null for calls of clients. */
  // `turnId`: the turn or the run that waits for it. `epoch`: that of the owner who published the item; older releases did not say it.
  reply: z.object({ sessionId: z.string(), turnId: z.string(), epoch: z.number().int().optional() }).nullable(),
});
export type RouterCall = z.infer<typeof routerCall>;

/** A client's call without its request: it has no ceiling on its tokens, and nobody to whom its result is reported. */
export type ClientCall = Omit<RouterCall, 'request' | 'maxTokens' | 'reply'>;

/**
 * Whether a message is a call as a gateway sends it for a client, with a request as most are. The schema says the same of it, and takes ten
 * times as long; whatever else comes is left to it.
 */
export function isPlainClientCall(value: unknown): value is RouterCall {
  if (typeof value !== 'object' || value === null) return false;
  const { v, callId, origin, want, deadlineAtMs, createdAtMs, detached, republished, keyId, traceparent, maxTokens, request, reply } = value as Partial<
    Record<keyof RouterCall, unknown>
  >;
  return (
    v === 1 &&
    typeof callId === 'string' &&
    typeof origin === 'string' &&
    (want === 'body' || want === 'frames') &&
    Number.isFinite(deadlineAtMs) &&
    Number.isFinite(createdAtMs) &&
    typeof detached === 'boolean' &&
    typeof republished === 'boolean' &&
    typeof keyId === 'string' &&
    (traceparent === null || typeof traceparent === 'string') &&
    maxTokens === null &&
    reply === null &&
    isPlainChatRequest(request)
  );
}

/** What stands in JSON as it is. */
const UNESCAPED = /^[ !#-[\]-~]*$/;

/**
 * The text of a client's call, made of that of its request: what `JSON.stringify` makes of both, at a fraction of what it takes. Each request
 * is sent so.
 */
export function clientCallText(call: ClientCall, requestText: string): string {
  const { v, callId, origin, want, deadlineAtMs, createdAtMs, detached, republished, keyId, traceparent } = call;
  const names = `"v":${v},"callId":${quoted(callId)},"origin":${quoted(origin)},"want":"${want}"`;
  const facts = `"deadlineAtMs":${deadlineAtMs},"createdAtMs":${createdAtMs},"detached":${detached},"republished":${republished}`;
  const caller = `"keyId":${quoted(keyId)},"traceparent":${traceparent === null ? 'null' : quoted(traceparent)},"maxTokens":null,"reply":null`;
  return `{${names},${facts},${caller},"request":${requestText}}`;
}

function quoted(text: string): string {
  return UNESCAPED.test(text) ? `"${text}"` : JSON.stringify(text);
}
