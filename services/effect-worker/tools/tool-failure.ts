/**
 * Why a request to a tool server brought no result. The first four were certainly not carried out.
 *
 * - `unreachable`: no connection, or the server refused the request as a whole
 * - `auth_failed`: it refused our key
 * - `session_lost`: it does not know our session any more
 * - `busy`: it asks for a later retry
 * - `lost`: sent, then the connection ended without a response
 * - `timeout`: no response in time; `sent` says whether the request had left
 * - `error`: a JSON-RPC error
 * - `unreadable`: a response that can't be read
 * - `stopped`: ended by the caller; `sent` as above
 */
export type FailureKind = 'unreachable' | 'auth_failed' | 'session_lost' | 'busy' | 'lost' | 'timeout' | 'error' | 'unreadable' | 'stopped';

interface Facts {
  /** Whether anything of the request may have reached the server. */
  sent?: boolean;
  /** Whether the same request may succeed later, where the kind alone does not tell. */
  retryable?: boolean;
  /** From the Retry-After header; null when there is none. */
  retryAfterMs?: number | null;
  /** HTTP status; null when there was none. */
  status?: number | null;
  /** JSON-RPC code; null when there was none. */
  rpcCode?: number | null;
  cause?: unknown;
}

/** A failed request to a tool server. The message goes to the model: it holds nothing of the request, and of the response only a JSON-RPC error's text. */
export class ToolFailure extends Error {
  override readonly name = 'ToolFailure';
  readonly kind: FailureKind;
  readonly sent: boolean;
  readonly retryable: boolean;
  readonly retryAfterMs: number | null;
  readonly status: number | null;
  readonly rpcCode: number | null;

  constructor(kind: FailureKind, message: string, { sent = false, retryable = true, retryAfterMs = null, status = null, rpcCode = null, cause }: Facts = {}) {
    super(message, { cause });
    this.kind = kind;
    this.sent = sent;
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
    this.status = status;
    this.rpcCode = rpcCode;
  }
}
