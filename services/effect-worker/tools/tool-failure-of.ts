import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client';
import { ToolFailure } from './tool-failure.ts';
import type { RequestProgress } from './watch-request.ts';

const MAX_MESSAGE_CHARACTERS = 500;
/** Added by servers that are made with older libraries. */
const PREFIX = /^(?:MCP error -?\d+: )+/;
/** JSON-RPC: the server does not speak the version of the request. */
const UNSUPPORTED_VERSION = -32_022;
/** Names of the errors of its parsers. */
const UNREADABLE = new Set(['ZodError', '$ZodError', 'SyntaxError']);
const BREAKS_PROTOCOL = 'the tool server gave an answer that breaks the protocol';

/** Classifies an error of the MCP client or the network, for a request of an open session. */
export function toolFailureOf(error: unknown, { sent, retryAfterMs }: RequestProgress): ToolFailure {
  if (error instanceof ToolFailure) return error;
  if (error instanceof SdkHttpError) return ofStatus(error.status, retryAfterMs);
  if (error instanceof SdkError) return ofClientError(error, { sent, retryAfterMs });
  if (error instanceof ProtocolError) return ofRpcError(error);
  if (error instanceof Error && UNREADABLE.has(error.name)) return new ToolFailure('unreadable', BREAKS_PROTOCOL, { sent: true });
  if (!sent) return new ToolFailure('unreachable', "the tool server can't be reached", { cause: error });
  return new ToolFailure('lost', 'the connection to the tool server was lost before its answer', { sent: true, cause: error });
}

/** The same for the handshake: no request was sent in any case. */
export function handshakeFailureOf(error: unknown): ToolFailure {
  const { kind, message, status, retryable, cause } = toolFailureOf(error, { sent: false, retryAfterMs: null });
  if (kind === 'auth_failed' || kind === 'busy') return new ToolFailure(kind, message, { status });
  const isTurnedAway = status !== null && status >= 300 && status < 500;
  // A server that sends another 3xx or 4xx, or breaks the protocol, will do so again.
  return new ToolFailure('unreachable', message, { status, retryable: retryable && !isTurnedAway && kind !== 'unreadable', cause });
}

function ofStatus(status: number, retryAfterMs: number | null): ToolFailure {
  const answered = `the tool server answered ${status}`;
  if (status === 401 || status === 403) return new ToolFailure('auth_failed', 'the tool server refused our key', { status });
  // 400: sent by servers that lost their sessions in a restart and give no reason.
  if (status === 404 || status === 400) return new ToolFailure('session_lost', answered, { status });
  if (status === 429 || status === 503) return new ToolFailure('busy', answered, { status, retryAfterMs });
  // A redirect, which is never followed, or a request that is refused as a whole.
  if (status >= 300 && status < 500) return new ToolFailure('unreachable', answered, { status, retryable: false });
  // How far the request got is unknown.
  return new ToolFailure('lost', answered, { sent: true, status });
}

function ofClientError(error: SdkError, progress: RequestProgress): ToolFailure {
  switch (error.code) {
    case SdkErrorCode.ClientHttpUnexpectedContent:
      return new ToolFailure('lost', BREAKS_PROTOCOL, { sent: true, status: -1 });
    case SdkErrorCode.InvalidResult:
      return new ToolFailure('unreadable', BREAKS_PROTOCOL, { sent: true });
    case SdkErrorCode.UnsupportedResultType:
      return new ToolFailure('error', 'the tool asks for further input, which is not supported', { sent: true });
    case SdkErrorCode.ConnectionClosed:
      return new ToolFailure('lost', 'the connection was closed', { sent: true });
    default:
      // The probe wraps what has gone wrong.
      return toolFailureOf(error.cause ?? new Error(error.message), progress);
  }
}

function ofRpcError({ code, message }: ProtocolError): ToolFailure {
  if (code === UNSUPPORTED_VERSION) return new ToolFailure('session_lost', 'the tool server speaks another version of the protocol', { sent: true });
  return new ToolFailure('error', message.replace(PREFIX, '').slice(0, MAX_MESSAGE_CHARACTERS), { sent: true, rpcCode: code });
}
