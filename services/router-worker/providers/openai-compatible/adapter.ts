import type { Clock } from '#shared/clock.ts';
import { Deadlines } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type HttpClient, type HttpExchange, openHttpClient } from '#shared/http/client.ts';
import type { CallSignal } from '../../call-signal.ts';
import type { Hear, ProviderAdapter, ProviderCall } from '../provider.ts';
import { learnDialect } from './adapt-parameters.ts';
import { BoundedText } from './bounded-text.ts';
import { partsOfStream, partsOfWhole } from './parts-of-body.ts';
import { guardSilence, type SilenceGuard } from './silence-guard.ts';
import { toBreak, toRefusal, toUnreachable, type Upstream } from './to-error.ts';
import { PartReader } from './to-parts.ts';
import { type Dialect, toRequest } from './to-request.ts';

const MAX_ERROR_BYTES = 64 * 1024;
/** How long the usage of a finished answer is waited for, and the end of a body that says nothing more. */
const LATE_USAGE_MS = 1_000;
/** Connections to one upstream: more than a worker has slots, so that only a leak meets it. */
const MAX_CONNECTIONS = 2_048;
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
  const deadlines = new Deadlines();
  const sender: Sender = { client, clock, deadlines, upstream: { name, apiKey }, dialects: new Map(), initial: { maxTokensField, refused: new Set() } };
  return {
    slug,
    stream: (call, signal, hear) => stream(sender, call, signal, hear),
    upstreamBody: (call) => toRequest(call, dialectOf(sender, call)),
    close: () => client.close(),
  };
}

interface Sender {
  client: HttpClient;
  clock: Clock;
  deadlines: Deadlines;
  upstream: Upstream;
  /** By upstream model. */
  dialects: Map<string, Dialect>;
  initial: Dialect;
}

async function stream(sender: Sender, call: ProviderCall, signal: CallSignal, hear: Hear): Promise<void> {
  const guard = guardSilence(sender.upstream.name, call.timeouts, signal, sender.deadlines);
  const reader = new PartReader();
  let exchange: HttpExchange | null = null;
  let isWanted = true;
  try {
    exchange = await send(sender, call, guard);
    // Asked to stream, some servers answer whole.
    const isWhole = exchange.header('content-type')?.includes('application/json') === true;
    const partsOf = isWhole ? partsOfWhole(reader) : partsOfStream(reader);
    const take = (piece: Buffer | null): boolean => {
      const parts = partsOf(piece);
      if (parts.length > 0) isWanted = hear(parts);
      // Some upstreams send the usage after the end mark. Once all is there, the connection is given back without waiting for its end.
      if (!isWanted || reader.broken !== null || (reader.ended && reader.hasUsage)) return false;
      guard.heard();
      if (reader.hasContent) guard.contentCame();
      if (reader.finished || reader.ended) guard.onlyFor(LATE_USAGE_MS);
      return true;
    };
    if (await exchange.read(take)) take(null);
    if (reader.broken !== null && isWanted) throw reader.broken;
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    // A finished answer is an answer, however its connection ends.
    if (!reader.finished) throw toBreak(sender.upstream, error);
  } finally {
    guard.stop();
    if (reader.finished && reader.ended) exchange?.release();
    else exchange?.abort(new Error('the answer is read no further'));
  }
  if (isWanted && !reader.finished)
    throw new SwitchyardError('router.provider_unavailable', `${sender.upstream.name} closed the stream before it had finished`);
}

/** Sends the request, and sends it again, in other words, when the model does not take a parameter. @throws what `ProviderAdapter.stream` says */
async function send(sender: Sender, call: ProviderCall, guard: SilenceGuard): Promise<HttpExchange> {
  let dialect = dialectOf(sender, call);
  for (let lesson = 0; ; lesson += 1) {
    const body = toRequest(call, dialect);
    guard.throwIfOver();
    const exchange = post(sender, body);
    guard.watch(exchange);
    try {
      await exchange.begun();
    } catch (error) {
      throw toUnreachable(sender.upstream, error);
    }
    const { status } = exchange;
    if (status >= 200 && status < 300) {
      remember(sender, call.model, dialect);
      return exchange;
    }
    const text = await readText(exchange, MAX_ERROR_BYTES).finally(() => exchange.abort(new Error('a refusal is read no further')));
    const mayLearn = (status === 400 || status === 422) && lesson < MAX_LESSONS && call.request.provider?.require_parameters !== true;
    const learned = mayLearn ? learnDialect(text, body, dialect) : null;
    const header = (name: string) => exchange.header(name);
    if (learned === null) throw toRefusal(sender.upstream, { status, header, text, nowMs: sender.clock.nowMs() });
    dialect = learned;
  }
}

/** Not async, and apart: the frame of `send` would hold the text of the body until the upstream answers. */
function post({ client, upstream }: Sender, body: Record<string, unknown>): HttpExchange {
  const headers: Record<string, string> = { accept: 'text/event-stream', 'content-type': 'application/json', 'user-agent': 'switchyard' };
  if (upstream.apiKey !== null) headers.authorization = `Bearer ${upstream.apiKey}`;
  return client.post('/chat/completions', { headers, body: JSON.stringify(body) });
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
  if (dialects.get(model)?.maxTokensField === maxTokensField) return;
  dialects.delete(model);
  dialects.set(model, { ...initial, maxTokensField });
  for (const oldest of dialects.keys()) {
    if (dialects.size <= MAX_DIALECTS) break;
    dialects.delete(oldest);
  }
}

/** A body as text, cut at a limit. */
async function readText(exchange: HttpExchange, maxBytes: number): Promise<string> {
  const body = new BoundedText(maxBytes);
  await exchange.read((piece) => body.add(piece));
  return body.text;
}
