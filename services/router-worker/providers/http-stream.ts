import type { Clock } from '#shared/clock.ts';
import type { PricedField } from '#shared/contracts/router/priced-fields.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { Deadlines } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { HttpExchange } from '#shared/http/client.ts';
import type { Outbound } from '#shared/http/outbound.ts';
import type { CallSignal } from '../call-signal.ts';
import { beginExchange, type JsonRequest, type JsonSender } from './http-stream/begin-exchange.ts';
import type { Secrets } from './http-stream/quoted-secrets.ts';
import { SilenceGuard } from './http-stream/silence-guard.ts';
import { type DescribeError, toBreak, toRefusal, type Upstream } from './http-stream/to-error.ts';
import { requestVectors, type VectorDialect } from './http-stream/vectors.ts';
import type { OpenedAdapter, PartHandler, ProviderCall, UpstreamRequest } from './provider.ts';

/** For usage and the end of the body, after the finish reason. */
const LATE_USAGE_MS = 1_000;
/** More than a worker has slots: only a leak reaches it. */
const MAX_CONNECTIONS = 2_048;
/** Retries per request with changed parameters. */
const MAX_ADAPTATIONS = 3;

/** A POST of one call. */
export interface OutgoingRequest extends JsonRequest {
  /** Of its answer. @param contentType of a 2xx; `''`: none */
  readerFor(contentType: string): AnswerReader;
  /** Fields of the endpoint's request that the body lacks. Absent: none. */
  omitted?: readonly PricedField[];
  /** Called on a 2xx. */
  accepted?(): void;
  /** After a 400 or 422 with this body: the request to send instead; null when the refusal stands. */
  adapted?(errorText: string): OutgoingRequest | null;
}

/** What is known of an answer while it is read. */
export interface AnswerProgress {
  /** A finish reason came: later errors don't matter. */
  readonly finished: boolean;
  /** The dialect's end mark came. */
  readonly ended: boolean;
  readonly hasContent: boolean;
  readonly hasUsage: boolean;
  /** ErrorEvent, SyntaxError or ZodError; nothing is read after it. Null: none. */
  readonly broken: unknown;
}

/** Reads the body of one answer. */
export interface AnswerReader {
  readonly progress: AnswerProgress;
  /** The parts of a piece; null marks the end of the body. @throws SseOverflow */
  partsOf(piece: Buffer | null): ProviderPart[];
  /** What a finished answer still lacks when it is read no further, however that came. Absent: nothing. */
  lastParts?(): ProviderPart[];
}

/** What differs between vendors' HTTP APIs that stream. Pure, but for what it learns from refusals. */
export interface HttpDialect {
  /** Before `requestFor` of a call that is sent: adds what the request needs from elsewhere. Absent: nothing. @throws as `ProviderAdapter.stream` */
  prepare?(call: UpstreamRequest, signal: CallSignal): Promise<UpstreamRequest>;
  requestFor(call: UpstreamRequest): OutgoingRequest;
  describeError: DescribeError;
  /** Absent: the API gives no vectors. */
  vectors?: VectorDialect;
}

const NOTHING: readonly PricedField[] = [];
const UNFINISHED = 'closed the stream before it had finished';
/** Of answers in some dialect. */
const ANSWER_TYPES: ReadonlySet<string> = new Set(['text/event-stream', 'application/json', 'application/vnd.amazon.eventstream']);
/** Without parameters. */
const MEDIA_TYPE = /^[a-z]+\/[\w.+-]{1,80}/i;

export interface HttpStreamOptions {
  slug: string;
  name: string;
  /** With the path that all requests share. */
  baseUrl: string;
  /** Masked in errors, since upstreams quote it; null: none is sent. A function: it changes. */
  apiKey: string | null | (() => Secrets);
  connectTimeoutMs: number;
  outbound: Outbound;
  clock: Clock;
  dialect: HttpDialect;
}

/** An adapter over HTTP: post, read, silence, bounds and errors are the same in every dialect. */
export function httpStream({ slug, name, baseUrl, apiKey, connectTimeoutMs, outbound, clock, dialect }: HttpStreamOptions): OpenedAdapter {
  const client = outbound.openClient({ baseUrl, connectTimeoutMs, maxConnections: MAX_CONNECTIONS });
  const currentKey = typeof apiKey === 'function' ? apiKey : () => apiKey;
  const upstream: Upstream = {
    name,
    get apiKey() {
      return currentKey();
    },
    describeError: dialect.describeError,
  };
  const sender: Sender = { client, clock, deadlines: new Deadlines(), upstream, dialect };
  const { vectors } = dialect;
  return {
    slug,
    stream: (call, signal, onParts) => stream(sender, call, signal, onParts),
    ...(vectors !== undefined && { embed: (call, signal) => requestVectors(sender, vectors, call, signal) }),
    upstreamBody: (call) => dialect.requestFor(call).body,
    close: () => client.close(),
  };
}

interface Sender extends JsonSender {
  dialect: HttpDialect;
}

async function stream(sender: Sender, call: ProviderCall, signal: CallSignal, onParts: PartHandler): Promise<void> {
  const { upstream, dialect } = sender;
  const guard = new SilenceGuard(upstream.name, call.timeouts, signal, sender.deadlines);
  let exchange: HttpExchange | null = null;
  let progress: AnswerProgress | null = null;
  let lastParts: AnswerReader['lastParts'];
  let isReading = true;
  let contentType = '';
  try {
    const prepared = dialect.prepare === undefined ? call : await dialect.prepare(call, signal);
    const response = await send(sender, dialect.requestFor(prepared), guard);
    exchange = response.exchange;
    const { omitted = NOTHING } = response;
    if (omitted.length > 0) isReading = onParts([{ type: 'fields-omitted', names: omitted }]);
    contentType = exchange.header('content-type') ?? '';
    const reader = response.readerFor(contentType);
    const read = reader.progress;
    progress = read;
    lastParts = reader.lastParts;
    const onChunk = (piece: Buffer | null): boolean => {
      const parts = reader.partsOf(piece);
      if (parts.length > 0) isReading = onParts(parts);
      // Usage may follow the end mark. With both there, the connection is released without waiting for the end of the body.
      if (!isReading || read.broken !== null || (read.ended && read.hasUsage)) return false;
      guard.noteReceived();
      if (read.hasContent) guard.contentCame();
      if (read.finished || read.ended) guard.onlyFor(LATE_USAGE_MS);
      return true;
    };
    if (await exchange.read(onChunk)) onChunk(null);
    if (read.broken !== null && isReading) throw read.broken;
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    // Errors after the finish reason don't matter.
    if (progress?.finished !== true) throw toBreak(upstream, error);
  } finally {
    guard.stop();
    if (progress?.finished === true && progress.ended) exchange?.release();
    else exchange?.abort(new Error('the answer is read no further'));
  }
  if (!isReading) return;
  if (progress?.finished === true) {
    const last = lastParts?.() ?? [];
    if (last.length > 0) onParts(last);
    return;
  }
  throw new SwitchyardError('router.provider_unavailable', `${upstream.name} ${progress?.hasContent ? UNFINISHED : unreadable(contentType)}`);
}

/** Nothing of it was an answer. It may be a page of a proxy: its media type says what came, and its text is not quoted. */
function unreadable(contentType: string): string {
  const mediaType = MEDIA_TYPE.exec(contentType)?.[0].toLowerCase();
  return mediaType === undefined || ANSWER_TYPES.has(mediaType) ? UNFINISHED : `answered with ${mediaType}, which held no answer`;
}

/** Without the request, whose body would be retained until the answer's end. */
interface Response {
  exchange: HttpExchange;
  readerFor: OutgoingRequest['readerFor'];
  omitted: OutgoingRequest['omitted'];
}

/** Sends the request, and again as the dialect adapts it to a refusal. @throws as `ProviderAdapter.stream` */
async function send(sender: Sender, first: OutgoingRequest, guard: SilenceGuard): Promise<Response> {
  let request = first;
  for (let adaptation = 0; ; adaptation += 1) {
    const { exchange, refusal } = await beginExchange(sender, request, guard);
    if (refusal === null) {
      request.accepted?.();
      return { exchange, readerFor: request.readerFor, omitted: request.omitted };
    }
    const mayAdapt = (refusal.status === 400 || refusal.status === 422) && adaptation < MAX_ADAPTATIONS;
    const adapted = mayAdapt ? (request.adapted?.(refusal.text) ?? null) : null;
    if (adapted === null) throw toRefusal(sender.upstream, refusal);
    request = adapted;
  }
}
