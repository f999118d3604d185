/**
 * Why a request to a tool server brought no result. The first four say that it was certainly not carried out.
 *
 * - `unreachable`: no connection, or the server turned the request away as a whole
 * - `auth_failed`: it did not take our key
 * - `session_lost`: it does not know our session any more
 * - `busy`: it asks us to come back later
 * - `lost`: sent, and no answer came
 * - `timeout`: none came in time. `sent` says whether the request had left
 * - `error`: it answered with an error of its own (JSON-RPC)
 * - `unreadable`: it answered with something that can't be read
 * - `stopped`: the caller has no use for it any more. `sent` as above
 */
export type FailureKind = 'unreachable' | 'auth_failed' | 'session_lost' | 'busy' | 'lost' | 'timeout' | 'error' | 'unreadable' | 'stopped';

interface Facts {
  /** Whether anything of the request may have reached the server. */
  sent?: boolean;
  /** Whether the same may pass in a moment, where the kind alone does not say so. */
  retryable?: boolean;
  /** How long the server asks us to wait; null when it says nothing. */
  retryAfterMs?: number | null;
  /** HTTP status; null when there was none. */
  status?: number | null;
  /** JSON-RPC code; null when there was none. */
  rpcCode?: number | null;
  cause?: unknown;
}

/** The message is for the model and for people: it holds nothing of the request, and of the answer only a JSON-RPC error's text. */
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
