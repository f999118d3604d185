import type { Clock } from '#shared/clock.ts';
import type { Deadlines } from '#shared/deadlines.ts';
import type { HttpClient, HttpExchange } from '#shared/http/client.ts';
import { bodyJson, deferredIn } from '#shared/prompts/deferred-messages.ts';
import { exactJson } from '../exact-numbers.ts';
import { BoundedText } from './bounded-text.ts';
import type { SilenceGuard } from './silence-guard.ts';
import { type Refusal, toUnreachable, type Upstream } from './to-error.ts';

const MAX_ERROR_BYTES = 64 * 1024;
const OF_ALL = { accept: 'text/event-stream', 'content-type': 'application/json', 'user-agent': 'switchyard' };

/** A POST of JSON. */
export interface JsonRequest {
  /** Begins with `/`; appended to the base URL's path. */
  path: string;
  /** Beside those of every JSON request. */
  headers: Readonly<Record<string, string>>;
  body: Record<string, unknown>;
  /** Headers that depend on the body, such as its signature. Absent: none. @throws SwitchyardError */
  sign?(body: string): Promise<Readonly<Record<string, string>>>;
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
  const exchange = request.sign === undefined ? post(client, request) : await signedPost(client, request, guard);
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
  const json = deferredIn(body) === null ? exactJson(body) : bodyJson(body);
  return client.post(path, { headers: { ...OF_ALL, ...headers }, body: json });
}

/** Likewise separate. The time of the signature counts to that of the answer. */
async function signedPost(client: HttpClient, request: JsonRequest, guard: SilenceGuard): Promise<HttpExchange> {
  const body = exactJson(request.body);
  const signed = await request.sign?.(body);
  guard.throwIfOver();
  return client.post(request.path, { headers: { ...OF_ALL, ...request.headers, ...signed }, body });
}

async function readText(exchange: HttpExchange): Promise<string> {
  const body = new BoundedText(MAX_ERROR_BYTES);
  await exchange.read((piece) => body.add(piece));
  return body.text;
}
