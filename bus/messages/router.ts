import { z } from 'zod';
import { chatRequest } from '#shared/contracts/router/chat-request.ts';
import { embeddingCall } from '#shared/contracts/router/embedding-call.ts';
import { isValidChatRequest } from '#shared/contracts/router/valid-chat-request.ts';
import { actorShape, withActorFields } from './actor-fields.ts';
import { quoted } from './quoted.ts';

/** The newest version that this release reads. It writes version 1 (ADR 37). */
export const ROUTER_CALL_VERSION = 2;

/** Begins the ids of calls by which a host evaluates documents after its start: many at a time. */
export const EVALUATION_CALL_PREFIX = 'evl';

/** What an actor's call is for, for traces: ids and counts. */
const callStep = z.object({
  /** `compose`, `preamble`, `moderation`, `applied`, `run`, or the name of a question. */
  name: z.string(),
  /** Of a question: how many items it is about. */
  items: z.number().optional(),
  /** Of policies. */
  batchClass: z.string().optional(),
  routineId: z.string().optional(),
});
export type CallStep = z.infer<typeof callStep>;

const replyAddress = z.object({
  sessionId: z.string(),
  /** The turn or run that waits. */
  ...actorShape,
  /** Of the publishing owner; absent from older releases. */
  epoch: z.number().int().optional(),
});

/**
 * One model call on `work.router.call` or `work.router.turn`; its message id is the call id. It carries no credential: the worker resolves provider keys by
 * itself. A long one may begin with a field `messagesAt` (deferred-call.ts), which is no part of its meaning.
 */
export const routerCall = z.object({
  v: z.literal([1, ROUTER_CALL_VERSION]),
  /** The generation id of a client's call; the effect id of an actor's call. */
  callId: z.string(),
  /** Frames go to `tok.<origin>.<callId>`. */
  origin: z.string(),
  /** `frames`: every chunk as it comes. `body`: one terminal frame with the whole answer. `none`: no frame, only the command to `reply`. */
  want: z.enum(['frames', 'body', 'none']),
  /**
   * The API whose form the answer has, a row of `shared/surfaces/surfaces.ts`; frames then state their template. Absent from older releases, which read chat
   * completions in frames that state none.
   */
  surface: z.string().optional(),
  /** Epoch milliseconds after which the call is not begun, and ends with `router.timeout` if it runs. */
  deadlineAtMs: z.number(),
  createdAtMs: z.number(),
  /** Whether the call goes on without readers; other calls end with their last reader. */
  detached: z.boolean().default(false),
  /** May have been published before, as after a take-over: the worker first checks the effect's row. */
  republished: z.boolean().default(false),
  /** The calling key, in the router's configuration. */
  keyId: z.string(),
  /** W3C trace context of the caller; null when there is none. */
  traceparent: z.string().nullable(),
  /** Whether credit is reserved for it: its terminal frame waits for the usage record, and no endpoint without prices serves it. Absent: no. */
  reserved: z.boolean().optional(),
  /** Hash of the configuration that its gateway has admitted it under. Absent from older releases, and from actors' calls: that of the worker. */
  admittedUnder: z.string().optional(),
  /** Whether its answer states where it went, as `openrouter_metadata`. Absent: no; workers of older releases pass over it. */
  routerMetadata: z.boolean().optional(),
  /** What its key's tokens per minute count for it, as estimated: the worker corrects that. Absent: they are not limited. */
  countedTokens: z.number().int().min(0).optional(),
  /** Ceiling on completion tokens, further lowered to the endpoint's limit; null for none. */
  maxTokens: z.number().int().min(1).nullable(),
  /** Absent from clients' calls, and from older releases. */
  step: callStep.optional(),
  request: chatRequest,
  /** Of a call for vectors, on the surface `embeddings`; its inputs are the request's messages. Absent: the call is a chat. */
  embedding: embeddingCall.optional(),
  /** Where the result goes as a command; null for calls of clients. */
  reply: z.preprocess(withActorFields, replyAddress).nullable(),
});
export type RouterCall = z.infer<typeof routerCall>;

/** Without its request; `reply` is always null, and `step` absent. */
export type ClientCall = Omit<RouterCall, 'request' | 'reply' | 'step'>;

/** Whether a message is a client's call of a chat. Agrees with the schema, and takes a part of its time; false leaves the message to the schema. */
export function isClientCall(value: unknown): value is RouterCall {
  if (typeof value !== 'object' || value === null) return false;
  const {
    v,
    callId,
    origin,
    want,
    surface,
    deadlineAtMs,
    createdAtMs,
    detached,
    republished,
    keyId,
    traceparent,
    reserved,
    countedTokens,
    admittedUnder,
    routerMetadata,
    maxTokens,
    request,
    embedding,
    reply,
  } = value as Partial<Record<keyof RouterCall, unknown>>;
  return (
    v === 1 &&
    typeof callId === 'string' &&
    typeof origin === 'string' &&
    (want === 'body' || want === 'frames') &&
    (surface === undefined || typeof surface === 'string') &&
    Number.isFinite(deadlineAtMs) &&
    Number.isFinite(createdAtMs) &&
    typeof detached === 'boolean' &&
    typeof republished === 'boolean' &&
    typeof keyId === 'string' &&
    (traceparent === null || typeof traceparent === 'string') &&
    (reserved === undefined || typeof reserved === 'boolean') &&
    (countedTokens === undefined || (Number.isSafeInteger(countedTokens) && (countedTokens as number) >= 0)) &&
    (admittedUnder === undefined || typeof admittedUnder === 'string') &&
    (routerMetadata === undefined || typeof routerMetadata === 'boolean') &&
    (maxTokens === null || (Number.isSafeInteger(maxTokens) && (maxTokens as number) >= 1)) &&
    embedding === undefined &&
    reply === null &&
    isValidChatRequest(request)
  );
}

const END = Buffer.from('}');

/**
 * The JSON of a client's call around that of its request: what `JSON.stringify` makes of both, at a fraction of the cost. A request of a megabyte is copied
 * once, and is neither decoded nor encoded.
 * @param request JSON in UTF-8, without a byte order mark
 */
export function clientCallBytes(call: ClientCall, request: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(clientCallHead(call)), request, END]);
}

/** The JSON of a client's call up to its request, which is the last field. */
export function clientCallHead(call: ClientCall): string {
  const {
    v,
    callId,
    origin,
    want,
    surface,
    deadlineAtMs,
    createdAtMs,
    detached,
    republished,
    keyId,
    traceparent,
    reserved,
    countedTokens,
    admittedUnder,
    routerMetadata,
    maxTokens,
    embedding,
  } = call;
  const names = `"v":${v},"callId":${quoted(callId)},"origin":${quoted(origin)},"want":"${want}"${surface === undefined ? '' : `,"surface":${quoted(surface)}`}`;
  const facts = `"deadlineAtMs":${deadlineAtMs},"createdAtMs":${createdAtMs},"detached":${detached},"republished":${republished}`;
  const caller = `"keyId":${quoted(keyId)},"traceparent":${traceparent === null ? 'null' : quoted(traceparent)}`;
  const reservation = reserved === undefined ? '' : `"reserved":${reserved},`;
  const counted = countedTokens === undefined ? '' : `"countedTokens":${countedTokens},`;
  const configuration = admittedUnder === undefined ? '' : `"admittedUnder":${quoted(admittedUnder)},`;
  const why = routerMetadata === undefined ? '' : `"routerMetadata":${routerMetadata},`;
  const vectors = embedding === undefined ? '' : `"embedding":${JSON.stringify(embedding)},`;
  return `{${names},${facts},${caller},${reservation}${counted}${configuration}${why}${vectors}"maxTokens":${maxTokens},"reply":null,"request":`;
}
