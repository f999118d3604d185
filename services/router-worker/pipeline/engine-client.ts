import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { HttpExchange } from '#shared/http/client.ts';
import type { Outbound } from '#shared/http/outbound.ts';
import type { CallSignal } from '../call-signal.ts';
import { BoundedText } from '../providers/http-stream/bounded-text.ts';

/** Further requests of this process to the engine wait. */
const MAX_CONNECTIONS = 64;
/** Of an answer. */
const MAX_ANSWER_BYTES = 4 * 1_024 * 1_024;
const BEARER = 'authorization';

/** Of any engine. */
export interface EngineDeps {
  outbound: Outbound;
  connectTimeoutMs: number;
  /** The value of a `${VARIABLE}`. */
  secret(reference: string): string;
}

export interface EngineAddress {
  /** In errors. */
  name: string;
  /** Of the configuration. */
  url: string;
  headers: Readonly<Record<string, string>>;
  /** From the request to the end of its answer. */
  timeoutMs: number;
}

/** The header with the key of an engine; none: it has no key. */
export function engineHeaders(
  { api_key: key, key_header: header }: { api_key?: string | undefined; key_header: string },
  { secret }: Pick<EngineDeps, 'secret'>,
): Readonly<Record<string, string>> {
  if (key === undefined) return {};
  const credential = secret(key);
  return { [header]: header === BEARER ? `Bearer ${credential}` : credential };
}

/** An engine of a plugin, over HTTP. */
export interface EngineClient {
  /** @returns the JSON of its answer @throws `router.plugin_unavailable` for anything but a 200 with JSON in time; the signal's reason after an abort */
  post(body: unknown, signal: CallSignal): Promise<unknown>;
  /** Closes all connections, also those in use. */
  close(): Promise<void>;
}

export function openEngineClient({ name, url, headers, timeoutMs }: EngineAddress, { outbound, connectTimeoutMs }: EngineDeps): EngineClient {
  const { origin, pathname, search } = new URL(url);
  const client = outbound.openClient({ baseUrl: origin, connectTimeoutMs, maxConnections: MAX_CONNECTIONS });
  const sent = { accept: 'application/json', 'content-type': 'application/json', 'user-agent': 'switchyard', ...headers };
  return {
    async post(body, signal) {
      signal.throwIfAborted();
      const exchange = client.post(`${pathname}${search}`, { headers: sent, body: JSON.stringify(body) });
      const onAbort = () => exchange.abort(signal.reason);
      signal.addEventListener('abort', onAbort);
      const timer = setTimeout(() => exchange.abort(unavailable(name, `it gave no answer within ${timeoutMs} ms`)), timeoutMs);
      try {
        return await answerOf(exchange, name);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        throw error instanceof SwitchyardError ? error : unavailable(name, reasonOf(error), error);
      } finally {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        // Without effect on one that is complete.
        exchange.abort(new Error('the answer is read no further'));
      }
    },
    close: () => client.close(),
  };
}

/** An engine that can't be used: the request must not go on as if its plugin had been applied. @param status that it answered with; absent: none */
export function unavailable(name: string, reason: string, cause?: unknown, status?: number): SwitchyardError {
  const details = { engine: name, ...(status !== undefined && { status }) };
  return new SwitchyardError('router.plugin_unavailable', `${name} can't be used: ${reason}`, { cause, details });
}

async function answerOf(exchange: HttpExchange, name: string): Promise<unknown> {
  await exchange.begun();
  // A redirect is not followed: its target is not configured.
  if (exchange.status !== 200) throw unavailable(name, `it answered ${exchange.status}`, undefined, exchange.status);
  const text = new BoundedText(MAX_ANSWER_BYTES);
  if (!(await exchange.read((piece) => text.add(piece)))) throw unavailable(name, `its answer is longer than ${MAX_ANSWER_BYTES} bytes`);
  try {
    return JSON.parse(text.text);
  } catch {
    throw unavailable(name, 'its answer is not JSON');
  }
}

/** The network's code, without text that may come from the engine. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : '';
  return `the connection failed${code}`;
}
