import type { Clock } from '#shared/clock.ts';
import { Deadlines } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { HttpClient, HttpExchange } from '#shared/http/client.ts';
import type { Outbound } from '#shared/http/outbound.ts';
import type { CallSignal } from '../../call-signal.ts';
import type { PartHandler, ProviderAdapter, ProviderCall } from '../provider.ts';
import { adaptParameters } from './adapt-parameters.ts';
import { BoundedText } from './bounded-text.ts';
import { partsOfStream, partsOfWhole } from './parts-of-body.ts';
import { guardSilence, type SilenceGuard } from './silence-guard.ts';
import { toBreak, toRefusal, toUnreachable, type Upstream } from './to-error.ts';
import { PartReader } from './to-parts.ts';
import { type ParameterCompatibility, toRequest } from './to-request.ts';

const MAX_ERROR_BYTES = 64 * 1024;
/** For usage and the end of the body, after the finish reason. */
const LATE_USAGE_MS = 1_000;
/** More than a worker has slots: only a leak reaches it. */
const MAX_CONNECTIONS = 2_048;
/** Retries per request with changed parameters. */
const MAX_ADAPTATIONS = 3;
/** Cached names of the token limit, one per model. */
const MAX_COMPATIBILITIES = 512;

export interface OpenAiCompatibleOptions {
  slug: string;
  name: string;
  /** Without `/chat/completions`. */
  baseUrl: string;
  /** Null for upstreams without authentication. */
  apiKey: string | null;
  connectTimeoutMs: number;
  outbound: Outbound;
  /** The name of the token limit to try first. */
  maxTokensField: ParameterCompatibility['maxTokensField'];
  clock: Clock;
}

/** Adapter for upstreams with POST /chat/completions. Vendors' differences are options, or learned from errors. */
export function openAiCompatible(options: OpenAiCompatibleOptions): ProviderAdapter & { close(): Promise<void> } {
  const { slug, name, baseUrl, apiKey, connectTimeoutMs, maxTokensField, outbound, clock } = options;
  const client = outbound.openClient({ baseUrl, connectTimeoutMs, maxConnections: MAX_CONNECTIONS });
  const deadlines = new Deadlines();
  const sender: Sender = { client, clock, deadlines, upstream: { name, apiKey }, compatibilities: new Map(), initial: { maxTokensField, refused: new Set() } };
  return {
    slug,
    stream: (call, signal, onParts) => stream(sender, call, signal, onParts),
    upstreamBody: (call) => toRequest(call, compatibilityOf(sender, call)),
    close: () => client.close(),
  };
}

interface Sender {
  client: HttpClient;
  clock: Clock;
  deadlines: Deadlines;
  upstream: Upstream;
  /** By upstream model. */
  compatibilities: Map<string, ParameterCompatibility>;
  initial: ParameterCompatibility;
}

async function stream(sender: Sender, call: ProviderCall, signal: CallSignal, onParts: PartHandler): Promise<void> {
  const guard = guardSilence(sender.upstream.name, call.timeouts, signal, sender.deadlines);
  const reader = new PartReader();
  let exchange: HttpExchange | null = null;
  let isReading = true;
  try {
    exchange = await send(sender, call, guard);
    // Some servers answer a stream request with a whole body.
    const isWhole = exchange.header('content-type')?.includes('application/json') === true;
    const partsOf = isWhole ? partsOfWhole(reader) : partsOfStream(reader);
    const onChunk = (piece: Buffer | null): boolean => {
      const parts = partsOf(piece);
      if (parts.length > 0) isReading = onParts(parts);
      // Usage may follow `[DONE]`. With both there, the connection is released without waiting for the end of the body.
      if (!isReading || reader.broken !== null || (reader.ended && reader.hasUsage)) return false;
      guard.noteReceived();
      if (reader.hasContent) guard.contentCame();
      if (reader.finished || reader.ended) guard.onlyFor(LATE_USAGE_MS);
      return true;
    };
    if (await exchange.read(onChunk)) onChunk(null);
    if (reader.broken !== null && isReading) throw reader.broken;
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    // Errors after the finish reason don't matter.
    if (!reader.finished) throw toBreak(sender.upstream, error);
  } finally {
    guard.stop();
    if (reader.finished && reader.ended) exchange?.release();
    else exchange?.abort(new Error('the answer is read no further'));
  }
  if (isReading && !reader.finished)
    throw new SwitchyardError('router.provider_unavailable', `${sender.upstream.name} closed the stream before it had finished`);
}

/** Sends the request, and again with changed parameters when the model refuses one. @throws as `ProviderAdapter.stream` */
async function send(sender: Sender, call: ProviderCall, guard: SilenceGuard): Promise<HttpExchange> {
  let compatibility = compatibilityOf(sender, call);
  for (let adaptation = 0; ; adaptation += 1) {
    const body = toRequest(call, compatibility);
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
      cacheCompatibility(sender, call.model, compatibility);
      return exchange;
    }
    const text = await readText(exchange, MAX_ERROR_BYTES).finally(() => exchange.abort(new Error('a refusal is read no further')));
    const mayAdapt = (status === 400 || status === 422) && adaptation < MAX_ADAPTATIONS && call.request.provider?.require_parameters !== true;
    const adapted = mayAdapt ? adaptParameters(text, body, compatibility) : null;
    const header = (name: string) => exchange.header(name);
    if (adapted === null) throw toRefusal(sender.upstream, { status, header, text, nowMs: sender.clock.nowMs() });
    compatibility = adapted;
  }
}

/** Not async, and separate: the frame of `send` would keep the body's text until the upstream answers. */
function post({ client, upstream }: Sender, body: Record<string, unknown>): HttpExchange {
  const headers: Record<string, string> = { accept: 'text/event-stream', 'content-type': 'application/json', 'user-agent': 'switchyard' };
  if (upstream.apiKey !== null) headers.authorization = `Bearer ${upstream.apiKey}`;
  return client.post('/chat/completions', { headers, body: JSON.stringify(body) });
}

/** With `require_parameters` nothing is dropped: the caller gets the upstream's error instead. */
function compatibilityOf({ compatibilities, initial }: Sender, { model, request }: Pick<ProviderCall, 'model' | 'request'>): ParameterCompatibility {
  const compatibility = compatibilities.get(model) ?? initial;
  return request.provider?.require_parameters === true ? { ...compatibility, refused: initial.refused } : compatibility;
}

/** Caches the accepted name of the token limit. Other refused parameters are not cached: another value may be accepted. */
function cacheCompatibility({ compatibilities, initial }: Sender, model: string, { maxTokensField }: ParameterCompatibility): void {
  if (compatibilities.get(model)?.maxTokensField === maxTokensField) return;
  compatibilities.delete(model);
  compatibilities.set(model, { ...initial, maxTokensField });
  for (const oldest of compatibilities.keys()) {
    if (compatibilities.size <= MAX_COMPATIBILITIES) break;
    compatibilities.delete(oldest);
  }
}

async function readText(exchange: HttpExchange, maxBytes: number): Promise<string> {
  const body = new BoundedText(maxBytes);
  await exchange.read((piece) => body.add(piece));
  return body.text;
}
