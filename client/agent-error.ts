/** What went wrong before the server answered, or with its answer. Other codes are the server's. */
export type ClientErrorCode = 'client.no_answer' | 'client.timeout' | 'client.bad_answer' | 'client.no_stream' | 'client.redirected';

export interface AgentErrorDetails {
  /** Null: there was no answer. */
  status?: number | null;
  /** JSON Pointer of the invalid field. */
  path?: string | null;
  requestId?: string | null;
  retryAfterMs?: number | null;
  /** The body of the answer as JSON; undefined: none. Of a 409 it names the earlier run. */
  body?: unknown;
  cause?: unknown;
}

/** A request that failed. The message is the server's where it gave one; it never contains the key. */
export class AgentError extends Error {
  override readonly name = 'AgentError';
  readonly code: string;
  readonly status: number | null;
  readonly path: string | null;
  readonly requestId: string | null;
  readonly retryAfterMs: number | null;
  readonly body: unknown;

  /** @param code of the answer's body, or a `ClientErrorCode` */
  constructor(code: string, message: string, { status = null, path = null, requestId = null, retryAfterMs = null, body, cause }: AgentErrorDetails = {}) {
    super(message, { cause });
    this.code = code;
    this.status = status;
    this.path = path;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
    this.body = body;
  }

  /** Whether the same request may succeed later: no answer, overload, a restart, a store that is unreachable. */
  get isTransient(): boolean {
    if (this.status === null) return this.code !== ('client.redirected' satisfies ClientErrorCode);
    return [408, 425, 429, 502, 503, 504].includes(this.status);
  }
}

/** @param code one of this client's own */
export function clientError(code: ClientErrorCode, message: string, details: AgentErrorDetails = {}): AgentError {
  return new AgentError(code, message, details);
}
