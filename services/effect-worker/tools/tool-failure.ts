/**
 * Why a request to a tool server brought no result. The first four were certainly not carried out.
 *
 * - `unreachable`: no connection, or the server refused the request as a whole
 * - `auth_failed`: it refused our key
 * - `session_lost`: it does not know our session any more
 * - `busy`: it asks for a later retry
 * - `lost`: sent, then the connection or the response ended without an answer
 * - `timeout`: no response in time; `sent` says whether the request had left
 * - `error`: a JSON-RPC error
 * - `unreadable`: a response that can't be read
 * - `stopped`: ended by the caller; `sent` as above
 */
export type FailureKind = 'unreachable' | 'auth_failed' | 'session_lost' | 'busy' | 'lost' | 'timeout' | 'error' | 'unreadable' | 'stopped';

interface Facts {
  /** Whether the server may have got any of it. */
  sent?: boolean;
  /** Where the kind alone does not decide. */
  retryable?: boolean;
  retryAfterMs?: number | null;
  /** HTTP. */
  status?: number | null;
  rpcCode?: number | null;
  cause?: unknown;
}

/** The message goes to the model: it holds nothing of the request, and of the response only a JSON-RPC error's text. */
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

/** The server has ended a response that holds none. */
export function unanswered(): ToolFailure {
  return new ToolFailure('lost', 'the response of the tool server holds no answer', { sent: true });
}

export function lostBeforeAnswer(): ToolFailure {
  return new ToolFailure('lost', 'the connection to the tool server was lost before its answer', { sent: true });
}
