import { pause } from './abort.ts';
import { AgentError } from './agent-error.ts';
import type { AgentEvent, BodyOf, InputOf, Method, PathOf, QueryOf, RequestOptions, ResultOf, Session } from './api.ts';
import { type FollowOptions, follow } from './follow.ts';
import type { FollowItem } from './follow-item.ts';
import { type Connection, request } from './http.ts';
import { newKey } from './new-key.ts';
import { defaultTimings, retryDelay, type Timings } from './timings.ts';

export interface AgentClientOptions {
  /** Such as `http://localhost:8080`; a path in it is kept. In a page of the server: `location.origin`. */
  baseUrl: string;
  /** Absent: the cookie of a login, in pages of the server alone. */
  apiKey?: string | undefined;
  fetch?: typeof globalThis.fetch | undefined;
  timings?: Partial<Timings> | undefined;
}

/** `event` null: the message is durable and has no offset yet; it comes in `events.follow`. `isRepeat`: the key had been sent before, also by this call. */
export interface SentMessage {
  event: AgentEvent | null;
  isRepeat: boolean;
  idempotencyKey: string;
}

export interface SendOptions extends RequestOptions {
  metadata?: Record<string, unknown> | undefined;
  /** Whether the router's moderation reads the message before the agent does. Absent: `none`. Its result comes later, in the event's metadata. */
  moderation?: NonNullable<QueryOf<'POST', '/sessions/{session_id}/events'>['moderation']> | undefined;
}

export interface AgentClient {
  /**
   * Any operation of the contract, by method and path.
   *
   * @throws AgentError; the signal's reason after an abort
   */
  request<M extends Method, P extends PathOf<M>>(method: M, path: P, ...input: InputArguments<M, P>): Promise<ResultOf<M, P>>;
  readonly sessions: {
    create(body?: BodyOf<'POST', '/sessions'>, options?: RequestOptions): Promise<Session>;
    get(sessionId: string, options?: RequestOptions): Promise<Session>;
    list(query?: QueryOf<'GET', '/sessions'>, options?: RequestOptions): Promise<ResultOf<'GET', '/sessions'>>;
    change(sessionId: string, patch: BodyOf<'PATCH', '/sessions/{session_id}'>, options?: RequestOptions): Promise<Session>;
    delete(sessionId: string, options?: RequestOptions): Promise<void>;
  };
  readonly messages: {
    /** Repeated under one key while the failure is transient, so the session gets the message at most once. */
    send(sessionId: string, text: string, options?: SendOptions): Promise<SentMessage>;
  };
  readonly events: {
    /** What is in the log now. */
    list(sessionId: string, query?: Omit<QueryOf<'GET', '/sessions/{session_id}/events'>, 'wait_for_data'>, options?: RequestOptions): Promise<AgentEvent[]>;
    follow(sessionId: string, options?: FollowOptions): AsyncIterable<FollowItem>;
  };
}

/** An input without a required field may be left out. */
type InputArguments<M extends Method, P extends PathOf<M>> = object extends InputOf<M, P> ? [input?: InputOf<M, P>] : [input: InputOf<M, P>];

/** Of a request with an idempotency key. With the default pauses they take some 15 s without an answer's own time. */
const MAX_TRIES = 8;

/** A client of the agent server, for browsers and Node. */
export function createAgentClient({ baseUrl, apiKey, fetch, timings }: AgentClientOptions): AgentClient {
  const connection: Connection = {
    baseUrl: baseUrl.replace(/\/+$/, ''),
    apiKey: apiKey ?? null,
    // A browser's fetch must not be called as a method.
    fetch: fetch ?? ((input, init) => globalThis.fetch(input, init)),
    timings: { ...defaultTimings, ...timings },
  };

  const send = async (method: Method, path: string, { path: parameters, query, body, idempotencyKey, signal }: AnyInput = {}) => {
    const http = {
      method,
      path: filledPath(path, parameters) + writtenQuery(query),
      headers: idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
      body,
    };
    return idempotencyKey === undefined
      ? request(connection, http, signal)
      : whileTransient(connection.timings, signal, () => request(connection, http, signal));
  };
  const call: AgentClient['request'] = async (method, path, ...[input]) => {
    const { value } = await send(method, path, input);
    return value as ResultOf<typeof method, typeof path>;
  };

  return {
    request: call,
    sessions: {
      create: (body = {}, options = {}) => call('POST', '/sessions', { ...withKey(options), body }),
      get: (sessionId, options = {}) => call('GET', '/sessions/{session_id}', { ...options, path: { session_id: sessionId } }),
      list: (query = {}, options = {}) => call('GET', '/sessions', { ...options, query }),
      change: (sessionId, patch, options = {}) =>
        call('PATCH', '/sessions/{session_id}', { ...withKey(options), path: { session_id: sessionId }, body: patch }),
      async delete(sessionId, options = {}) {
        await call('DELETE', '/sessions/{session_id}', { ...options, path: { session_id: sessionId } });
      },
    },
    messages: {
      async send(sessionId, text, { metadata, moderation, ...options } = {}) {
        const body = { kind: 'user_message', text, ...(metadata !== undefined && { metadata }) };
        const { idempotencyKey, signal } = withKey(options);
        const input = { path: { session_id: sessionId }, query: { moderation }, body, idempotencyKey, signal };
        const { status, value } = await send('POST', '/sessions/{session_id}/events', input);
        return { event: status === 202 ? null : (value as AgentEvent), isRepeat: status === 200, idempotencyKey };
      },
    },
    events: {
      list: (sessionId, query = {}, options = {}) =>
        call('GET', '/sessions/{session_id}/events', { ...options, path: { session_id: sessionId }, query: { ...query, wait_for_data: 0 } }),
      follow: (sessionId, options = {}) => follow(connection, sessionId, options),
    },
  };
}

type AnyInput = RequestOptions & { path?: Record<string, string> | undefined; query?: object | undefined; body?: unknown };

function withKey<Options extends RequestOptions>(options: Options): Options & { idempotencyKey: string } {
  return { ...options, idempotencyKey: options.idempotencyKey ?? newKey() };
}

async function whileTransient<Value>(timings: Timings, signal: AbortSignal | undefined, attempt: () => Promise<Value>): Promise<Value> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (failures >= MAX_TRIES || !(error instanceof AgentError && error.isTransient)) throw error;
      await pause(retryDelay(failures, timings, error.retryAfterMs), signal);
    }
  }
}

/** @throws TypeError for a parameter that is missing or would leave its segment */
function filledPath(path: string, parameters: Record<string, string> = {}): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = parameters[name];
    if (typeof value !== 'string' || value === '' || value === '.' || value === '..') throw new TypeError(`${path} needs a ${name}`);
    return encodeURIComponent(value);
  });
}

function writtenQuery(query: object = {}): string {
  const entries = Object.entries(query).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? '' : `?${new URLSearchParams(Object.fromEntries(entries.map(([name, value]) => [name, String(value)])))}`;
}
