import type { Clock } from '#shared/clock.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { Deadlines } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { HttpClient, HttpExchange } from '#shared/http/client.ts';
import type { Outbound } from '#shared/http/outbound.ts';
import type { CallSignal } from '../call-signal.ts';
import { BoundedText } from './http-stream/bounded-text.ts';
import { guardSilence, type SilenceGuard } from './http-stream/silence-guard.ts';
import { type DescribeError, toBreak, toRefusal, toUnreachable, type Upstream } from './http-stream/to-error.ts';
import type { OpenedAdapter, PartHandler, ProviderCall, UpstreamRequest } from './provider.ts';

const MAX_ERROR_BYTES = 64 * 1024;
/** For usage and the end of the body, after the finish reason. */
const LATE_USAGE_MS = 1_000;
/** More than a worker has slots: only a leak reaches it. */
const MAX_CONNECTIONS = 2_048;
/** Retries per request with changed parameters. */
const MAX_ADAPTATIONS = 3;

/** A POST of one call. */
export interface OutgoingRequest {
  /** Begins with `/`; appended to the base URL's path. */
  path: string;
  /** Beside those of every JSON request. */
  headers: Readonly<Record<string, string>>;
  body: Record<string, unknown>;
  /** Of its answer. @param contentType of a 2xx; `''`: none */
  readerFor(contentType: string): AnswerReader;
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
}

/** What differs between vendors' HTTP APIs that stream. Pure, but for what it learns from refusals. */
export interface HttpDialect {
  /** Before `requestFor` of a call that is sent: adds what the request needs from elsewhere. Absent: nothing. @throws as `ProviderAdapter.stream` */
  prepare?(call: UpstreamRequest, signal: CallSignal): Promise<UpstreamRequest>;
  requestFor(call: UpstreamRequest): OutgoingRequest;
  describeError: DescribeError;
}

export interface HttpStreamOptions {
  slug: string;
  name: string;
  /** With the path that all requests share. */
  baseUrl: string;
  /** Masked in errors, since upstreams quote it; null: none is sent. A function: it changes. */
  apiKey: string | null | (() => string | null);
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
  return {
    slug,
    stream: (call, signal, onParts) => stream(sender, call, signal, onParts),
    upstreamBody: (call) => dialect.requestFor(call).body,
    close: () => client.close(),
  };
}

interface Sender {
  client: HttpClient;
  clock: Clock;
  deadlines: Deadlines;
  upstream: Upstream;
  dialect: HttpDialect;
}

async function stream(sender: Sender, call: ProviderCall, signal: CallSignal, onParts: PartHandler): Promise<void> {
  const { upstream, dialect } = sender;
  const guard = guardSilence(upstream.name, call.timeouts, signal, sender.deadlines);
  let exchange: HttpExchange | null = null;
  let progress: AnswerProgress | null = null;
  let isReading = true;
  try {
    const prepared = dialect.prepare === undefined ? call : await dialect.prepare(call, signal);
    const response = await send(sender, dialect.requestFor(prepared), guard);
    exchange = response.exchange;
    const reader = response.readerFor(exchange.header('content-type') ?? '');
    const read = reader.progress;
    progress = read;
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
  if (isReading && !progress?.finished) throw new SwitchyardError('router.provider_unavailable', `${upstream.name} closed the stream before it had finished`);
}

/** Without the request, whose body would be retained until the answer's end. */
interface Response {
  exchange: HttpExchange;
  readerFor: OutgoingRequest['readerFor'];
}

/** Sends the request, and again as the dialect adapts it to a refusal. @throws as `ProviderAdapter.stream` */
async function send(sender: Sender, first: OutgoingRequest, guard: SilenceGuard): Promise<Response> {
  let request = first;
  for (let adaptation = 0; ; adaptation += 1) {
    guard.throwIfOver();
    const exchange = post(sender.client, request);
    guard.watch(exchange);
    try {
      await exchange.begun();
    } catch (error) {
      throw toUnreachable(sender.upstream, error);
    }
    const { status } = exchange;
    if (status >= 200 && status < 300) {
      request.accepted?.();
      return { exchange, readerFor: request.readerFor };
    }
    const text = await readText(exchange, MAX_ERROR_BYTES).finally(() => exchange.abort(new Error('a refusal is read no further')));
    const mayAdapt = (status === 400 || status === 422) && adaptation < MAX_ADAPTATIONS;
    const adapted = mayAdapt ? (request.adapted?.(text) ?? null) : null;
    const header = (name: string) => exchange.header(name);
    if (adapted === null) throw toRefusal(sender.upstream, { status, header, text, nowMs: sender.clock.nowMs() });
    request = adapted;
  }
}

/** Not async, and separate: the frame of `send` would keep the body's text until the upstream answers. */
function post(client: HttpClient, { path, headers, body }: OutgoingRequest): HttpExchange {
  return client.post(path, {
    headers: { accept: 'text/event-stream', 'content-type': 'application/json', 'user-agent': 'switchyard', ...headers },
    body: JSON.stringify(body),
  });
}

async function readText(exchange: HttpExchange, maxBytes: number): Promise<string> {
  const body = new BoundedText(maxBytes);
  await exchange.read((piece) => body.add(piece));
  return body.text;
}
