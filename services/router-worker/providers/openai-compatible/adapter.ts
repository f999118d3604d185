import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type HttpClient, type HttpResponse, openHttpClient } from '#shared/http/client.ts';
import { readSse } from '#shared/http/read-sse.ts';
import type { ProviderAdapter, ProviderCall, ProviderPart } from '../provider.ts';
import { learnDialect } from './learn-dialect.ts';
import { guardSilence, type SilenceGuard } from './silence-guard.ts';
import { toBreak, toRefusal, toUnreachable, type Upstream } from './to-error.ts';
import { PartReader } from './to-parts.ts';
import { type Dialect, toRequest } from './to-request.ts';

/** One event, or one whole answer. A data URL of a generated image fits; what is longer is not a chat completion. */
const MAX_EVENT_CHARS = 16 * 1024 * 1024;
const MAX_ERROR_BYTES = 64 * 1024;
/** How long the usage of a finished answer is waited for, and the end of a body that says nothing more. */
const LATE_USAGE_MS = 1_000;
/** Connections to one upstream: more than a worker has slots, so that only a leak meets it. */
const MAX_CONNECTIONS = 1_024;
/** Refusals of one request that may each teach us a parameter to leave out. */
const MAX_LESSONS = 3;
/** Models whose dialect is remembered. */
const MAX_DIALECTS = 512;

export interface OpenAiCompatibleOptions {
  slug: string;
  /** Display name, for messages. */
  name: string;
  /** The part of the address before `/chat/completions`. */
  baseUrl: string;
  /** Null for upstreams that ask for none. */
  apiKey: string | null;
  connectTimeoutMs: number;
  /** Which name of the token limit is tried first. */
  maxTokensField: Dialect['maxTokensField'];
  clock: Clock;
}

/** Any upstream that speaks POST /chat/completions. Differences between vendors are data in the options, or learned from refusals. */
export function openAiCompatible(options: OpenAiCompatibleOptions): ProviderAdapter & { close(): Promise<void> } {
  const { slug, name, baseUrl, apiKey, connectTimeoutMs, maxTokensField, clock } = options;
  const client = openHttpClient({ baseUrl, connectTimeoutMs, maxConnections: MAX_CONNECTIONS });
  const sender: Sender = { client, clock, upstream: { name, apiKey }, dialects: new Map(), initial: { maxTokensField, refused: new Set() } };
  return {
    slug,
    stream: (call, signal) => stream(sender, call, signal),
    upstreamBody: (call) => toRequest(call, dialectOf(sender, call)),
    close: () => client.close(),
  };
}

interface Sender {
  client: HttpClient;
  clock: Clock;
  upstream: Upstream;
  /** By upstream model. */
  dialects: Map<string, Dialect>;
  initial: Dialect;
}

async function* stream(sender: Sender, call: ProviderCall, signal: AbortSignal): AsyncGenerator<readonly ProviderPart[], void, void> {
  const guard = guardSilence(sender.upstream.name, call.timeouts, signal);
  const reader = new PartReader();
  let response: HttpResponse | null = null;
  try {
    response = await send(sender, call, guard);
    for await (const parts of readParts(response, reader)) {
      guard.heard();
      if (reader.hasContent) guard.contentCame();
      if (parts.length > 0) yield parts;
      if (reader.broken !== null) throw reader.broken;
      // Some upstreams send the usage after the end mark. Once all is there, the connection is given back without waiting for its end.
      if (reader.ended && reader.hasUsage) break;
      if (reader.finished || reader.ended) guard.onlyFor(LATE_USAGE_MS);
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    // A finished answer is an answer, however its connection ends.
    if (!reader.finished) throw toBreak(sender.upstream, error);
  } finally {
    guard.stop();
    if (reader.finished && reader.ended) response?.release();
    else response?.destroy();
  }
  if (!reader.finished) throw new SwitchyardError('router.provider_unavailable', `${sender.upstream.name} closed the stream before it had finished`);
}

async function* readParts(response: HttpResponse, reader: PartReader): AsyncGenerator<ProviderPart[], void, void> {
  // Asked to stream, some servers answer whole.
  if (response.header('content-type')?.includes('application/json')) {
    yield reader.readWhole(await readText(response, MAX_EVENT_CHARS));
    return;
  }
  for await (const events of readSse(response.chunks, { maxEventChars: MAX_EVENT_CHARS })) yield reader.readEvents(events);
}

/** Sends the request, and sends it again, in other words, when the model does not take a parameter. @throws what `ProviderAdapter.stream` says */
async function send(sender: Sender, call: ProviderCall, { signal }: SilenceGuard): Promise<HttpResponse> {
  let dialect = dialectOf(sender, call);
  for (let lesson = 0; ; lesson += 1) {
    const body = toRequest(call, dialect);
    const response = await post(sender, body, signal);
    const { status, header } = response;
    if (status >= 200 && status < 300) {
      remember(sender, call.model, dialect);
      return response;
    }
    const text = await readText(response, MAX_ERROR_BYTES).finally(() => response.destroy());
    const mayLearn = (status === 400 || status === 422) && lesson < MAX_LESSONS && call.request.provider?.require_parameters !== true;
    const learned = mayLearn ? learnDialect(text, body, dialect) : null;
    if (learned === null) throw toRefusal(sender.upstream, { status, header, text, nowMs: sender.clock.nowMs() });
    dialect = learned;
  }
}

/** Not async: its frame would hold the text of the body until the upstream answers. */
function post({ client, upstream }: Sender, body: Record<string, unknown>, signal: AbortSignal): Promise<HttpResponse> {
  const headers: Record<string, string> = { accept: 'text/event-stream', 'content-type': 'application/json', 'user-agent': 'switchyard' };
  if (upstream.apiKey !== null) headers.authorization = `Bearer ${upstream.apiKey}`;
  return client.post('/chat/completions', { headers, body: JSON.stringify(body), signal }).catch((error: unknown) => {
    throw signal.aborted ? signal.reason : toUnreachable(upstream, error);
  });
}

/** A caller who wants all of its parameters or none gets the upstream's refusal instead of an answer to less than was asked. */
function dialectOf({ dialects, initial }: Sender, { model, request }: Pick<ProviderCall, 'model' | 'request'>): Dialect {
  const dialect = dialects.get(model) ?? initial;
  return request.provider?.require_parameters === true ? { ...dialect, refused: initial.refused } : dialect;
}

/**
 * Keeps under which name a model takes the token limit, once it has answered to it. What else it refused concerns the one request:
 * another caller's value of the same parameter may be welcome.
 */
function remember({ dialects, initial }: Sender, model: string, { maxTokensField }: Dialect): void {
  dialects.delete(model);
  dialects.set(model, { ...initial, maxTokensField });
  for (const oldest of dialects.keys()) {
    if (dialects.size <= MAX_DIALECTS) break;
    dialects.delete(oldest);
  }
}

/** The body as text, cut at a limit. */
async function readText({ chunks }: HttpResponse, maxBytes: number): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    pieces.push(chunk);
    size += chunk.length;
    if (size >= maxBytes) break;
  }
  return Buffer.concat(pieces).subarray(0, maxBytes).toString('utf8');
}
