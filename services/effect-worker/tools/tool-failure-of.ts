import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { ZodError } from 'zod';
import { ToolFailure } from './tool-failure.ts';
import type { RequestProgress } from './watch-request.ts';

const MAX_MESSAGE_CHARACTERS = 500;
/** Added by the MCP client. */
const PREFIX = /^(?:MCP error -?\d+: )+/;

/** Classifies an error of the MCP client or the network, for a request of an open session. */
export function toolFailureOf(error: unknown, { sent, retryAfterMs }: RequestProgress): ToolFailure {
  if (error instanceof ToolFailure) return error;
  if (error instanceof StreamableHTTPError) return ofStatus(error.code ?? -1, retryAfterMs);
  if (error instanceof McpError) return ofRpcError(error);
  if (error instanceof ZodError || error instanceof SyntaxError) {
    return new ToolFailure('unreadable', 'the tool server gave an answer that breaks the protocol', { sent: true });
  }
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
  // A 5xx, or a response of another type: how far the request got is unknown.
  return new ToolFailure('lost', status < 0 ? 'the tool server gave an answer that breaks the protocol' : answered, { sent: true, status });
}

function ofRpcError({ code, message }: McpError): ToolFailure {
  if (code === ErrorCode.ConnectionClosed && /Connection closed$/.test(message)) return new ToolFailure('lost', 'the connection was closed', { sent: true });
  return new ToolFailure('error', message.replace(PREFIX, '').slice(0, MAX_MESSAGE_CHARACTERS), { sent: true, rpcCode: code });
}
