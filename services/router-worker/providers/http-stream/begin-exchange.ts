import type { Clock } from '#shared/clock.ts';
import type { Deadlines } from '#shared/deadlines.ts';
import type { HttpClient, HttpExchange } from '#shared/http/client.ts';
import { BoundedText } from './bounded-text.ts';
import type { SilenceGuard } from './silence-guard.ts';
import { type Refusal, toUnreachable, type Upstream } from './to-error.ts';

const MAX_ERROR_BYTES = 64 * 1024;

/** A POST of JSON. */
export interface JsonRequest {
  /** Begins with `/`; appended to the base URL's path. */
  path: string;
  /** Beside those of every JSON request. */
  headers: Readonly<Record<string, string>>;
  body: Record<string, unknown>;
}

export interface JsonSender {
  client: HttpClient;
  clock: Clock;
  deadlines: Deadlines;
  upstream: Upstream;
}

/** `refusal`: of a status other than 2xx, read and closed; null: the body is to be read. */
interface Begun {
  exchange: HttpExchange;
  refusal: Refusal | null;
}

/** Sends a request until the headers of its answer. @throws as `ProviderAdapter.stream` for an upstream that can't be reached */
export async function beginExchange({ client, clock, upstream }: JsonSender, request: JsonRequest, guard: SilenceGuard): Promise<Begun> {
  guard.throwIfOver();
  const exchange = post(client, request);
  guard.watch(exchange);
  try {
    await exchange.begun();
  } catch (error) {
    throw toUnreachable(upstream, error);
  }
  const { status } = exchange;
  if (status >= 200 && status < 300) return { exchange, refusal: null };
  const text = await readText(exchange).finally(() => exchange.abort(new Error('a refusal is read no further')));
  return { exchange, refusal: { status, header: (name) => exchange.header(name), text, nowMs: clock.nowMs() } };
}

/** Not async, and separate: the frame of its caller would keep the body's text until the upstream answers. */
function post(client: HttpClient, { path, headers, body }: JsonRequest): HttpExchange {
  return client.post(path, {
    headers: { accept: 'text/event-stream', 'content-type': 'application/json', 'user-agent': 'switchyard', ...headers },
    body: JSON.stringify(body),
  });
}

async function readText(exchange: HttpExchange): Promise<string> {
  const body = new BoundedText(MAX_ERROR_BYTES);
  await exchange.read((piece) => body.add(piece));
  return body.text;
}
