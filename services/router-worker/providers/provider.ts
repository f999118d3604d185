import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import type { CallSignal } from '../call-signal.ts';

export interface ProviderCall {
  /** The upstream's name of the model. */
  model: string;
  /** With supported parameters only. */
  request: ChatRequest;
  /** Of the endpoint, for APIs that require a limit in each request; absent: not known. */
  maxCompletionTokens?: number | undefined;
  timeouts: ProviderTimeouts;
  /** Whether parts are published as they come; absent: only as a whole answer. */
  isStreamed?: boolean;
}

/** What a request to an upstream is made from. */
export type UpstreamRequest = Pick<ProviderCall, 'model' | 'request' | 'maxCompletionTokens'>;

/** In milliseconds. The total limit comes through the signal. */
export interface ProviderTimeouts {
  connectMs: number;
  firstTokenMs: number;
  /** Between two reads after that. */
  idleMs: number;
}

/** @returns false to stop: the exchange is closed and the call ends. Never throws */
export type PartHandler = (parts: readonly ProviderPart[]) => boolean;

export interface ProviderAdapter {
  readonly slug: string;
  /**
   * Emits a batch of parts per read of the upstream; a callback, to make no promise per token. Resolves after a `finish` part; `usage` may come before or after
   * it, and the last one counts.
   * @throws SwitchyardError with a `router.*` code; `details` may hold `status` (upstream's), `raw` (its error as parsed JSON or text), `providerCode`,
   *   `retryAfterMs`, and `connection: 'reset'` when a connection broke before any response. A stream without `finish` throws `router.provider_unavailable`. On
   *   abort the connection is closed at once and the signal's reason is thrown.
   */
  stream(call: ProviderCall, signal: CallSignal, onParts: PartHandler): Promise<void>;
  /** What `stream` would send, without credentials. */
  upstreamBody(call: UpstreamRequest): Record<string, unknown>;
}

/** Connections are opened by the first calls. */
export interface OpenedAdapter extends ProviderAdapter {
  /** Closes all connections, also those in use. */
  close(): Promise<void>;
}
