import { linkedAbort } from './abort.ts';
import { AgentError, clientError } from './agent-error.ts';
import type { Timings } from './timings.ts';

export interface Connection {
  /** Without a slash at the end. */
  baseUrl: string;
  /** Null: the cookie of the page. */
  apiKey: string | null;
  fetch: typeof globalThis.fetch;
  timings: Timings;
}

export interface HttpRequest {
  method: string;
  /** With its query, from `/` on. */
  path: string;
  headers?: Record<string, string>;
  body?: unknown;
}

/** Largest text of an error that is no JSON, such as a proxy's page, that a message quotes. */
const QUOTED_CHARACTERS = 200;

/**
 * One request until the head of its answer.
 *
 * @throws AgentError for anything but 2xx; the signal's reason after an abort
 */
export async function openRequest(connection: Connection, { method, path, headers, body }: HttpRequest, signal: AbortSignal): Promise<Response> {
  const { baseUrl, apiKey } = connection;
  let response: Response;
  try {
    response = await connection.fetch(`${baseUrl}${path}`, {
      method,
      headers: {
        ...(apiKey !== null && { authorization: `Bearer ${apiKey}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      credentials: apiKey === null ? 'same-origin' : 'omit',
      // A redirected POST would become a GET.
      redirect: 'manual',
      signal,
    });
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw clientError('client.no_answer', `${method} ${pathWithoutQuery(path)}: no answer from ${baseUrl || 'the server'}`, { cause: error });
  }
  if (response.ok) return response;
  throw await refusalOf(response, `${method} ${pathWithoutQuery(path)}`);
}

/**
 * One request, its answer read within `requestMs`.
 *
 * @returns `value`: parsed JSON, the text of another type, null without a body
 * @throws AgentError; the signal's reason after an abort
 */
export async function request(
  connection: Connection,
  http: HttpRequest,
  signal: AbortSignal | undefined,
): Promise<{ status: number; headers: Headers; value: unknown }> {
  const { controller, release } = linkedAbort(signal);
  const { requestMs } = connection.timings;
  const late = clientError('client.timeout', `${http.method} ${pathWithoutQuery(http.path)}: no answer within ${requestMs} ms`);
  const timer = setTimeout(() => controller.abort(late), requestMs);
  try {
    const response = await openRequest(connection, http, controller.signal);
    return { status: response.status, headers: response.headers, value: await bodyOf(response, controller.signal) };
  } finally {
    clearTimeout(timer);
    release();
  }
}

async function bodyOf(response: Response, signal: AbortSignal): Promise<unknown> {
  let text: string;
  try {
    text = await response.text();
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw clientError('client.no_answer', 'the answer broke off', { cause: error });
  }
  if (text === '') return null;
  if (!isJson(response)) return text;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw clientError('client.bad_answer', 'the answer is no JSON', { status: response.status, cause: error });
  }
}

async function refusalOf(response: Response, what: string): Promise<AgentError> {
  const { status, headers } = response;
  if (response.type === 'opaqueredirect' || (status >= 300 && status < 400)) {
    return clientError('client.redirected', `${what} is redirected to ${headers.get('location') ?? 'another address'}: use that one as baseUrl`);
  }
  const text = await response.text().catch(() => '');
  const body = jsonOf(text);
  const field = (name: string) => {
    const value = typeof body === 'object' && body !== null ? Reflect.get(body, name) : undefined;
    return typeof value === 'string' ? value : null;
  };
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return new AgentError(field('code') ?? `http_${status}`, field('error') ?? `${what}: ${status} ${text.slice(0, QUOTED_CHARACTERS)}`.trim(), {
    status,
    path: field('path'),
    requestId: headers.get('x-request-id'),
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1_000 : null,
    body,
  });
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isJson({ headers }: Response): boolean {
  return /^application\/([\w.+-]+\+)?json\b/i.test(headers.get('content-type') ?? '');
}

/** Queries can hold what a log should not. */
function pathWithoutQuery(path: string): string {
  return path.split('?')[0] ?? path;
}
