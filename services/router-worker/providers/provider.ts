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
  /** Whether the upstream is to search the web by itself. Only for providers that can (`ConfiguredProvider.webSearch`). */
  searchesWeb?: boolean;
  timeouts: ProviderTimeouts;
  /** Whether parts are published as they come; absent: only as a whole answer. */
  isStreamed?: boolean;
}

/** What a request to an upstream is made from. */
export type UpstreamRequest = Pick<ProviderCall, 'model' | 'request' | 'maxCompletionTokens' | 'searchesWeb'>;

/** In milliseconds. The total limit comes through the signal. */
export interface ProviderTimeouts {
  connectMs: number;
  firstTokenMs: number;
  /** Between two reads after that. */
  idleMs: number;
}

/** One of the inputs of a call for vectors: a text, token ids of the model, or content with pictures. */
export type VectorInput = string | readonly number[] | Exclude<ChatRequest['messages'][number]['content'], string | null | undefined>;

/** One request for vectors. */
export interface VectorCall {
  /** The upstream's name of the model. */
  model: string;
  /** All of one kind, and no more than the provider takes at once. */
  inputs: readonly VectorInput[];
  /** Null: as many as the model has. */
  dimensions: number | null;
  /** What the vectors are for, in the caller's words; null: not stated. */
  inputType: string | null;
  /** Null: not stated. */
  user: string | null;
  timeouts: ProviderTimeouts;
}

export interface Vectors {
  /** In the order of the inputs, as the upstream sent them: neither their number nor their length is checked. */
  vectors: readonly Float32Array[];
  /** Null: the upstream reports none. */
  promptTokens: number | null;
}

/** @returns false to stop: the exchange is closed and the call ends. Never throws */
export type PartHandler = (parts: readonly ProviderPart[]) => boolean;

export interface ProviderAdapter {
  readonly slug: string;
  /**
   * Emits a batch of parts per read of the upstream; a callback, to make no promise per token. Resolves after a `finish` part; `usage` may come before or after
   * it, and the last one counts.
   * @throws SwitchyardError with a `router.*` code; `details` may hold `status` (upstream's), `raw` (its error as parsed JSON or text), `providerCode`,
   *   `retryAfterMs`, and `connection`: `reset` when a connection broke before any response, `refused` when none came to be. A stream without `finish` throws `router.provider_unavailable`. On
   *   abort the connection is closed at once and the signal's reason is thrown.
   */
  stream(call: ProviderCall, signal: CallSignal, onParts: PartHandler): Promise<void>;
  /**
   * Vectors of the inputs, one request to the upstream. Absent: the provider has none, and `ConfiguredProvider.vectors` is null.
   * @throws as `stream`
   */
  embed?(call: VectorCall, signal: CallSignal): Promise<Vectors>;
  /** What `stream` would send, without credentials. Its JSON is that of `exactJson`. */
  upstreamBody(call: UpstreamRequest): Record<string, unknown>;
}

/** Connections are opened by the first calls. */
export interface OpenedAdapter extends ProviderAdapter {
  /** Closes all connections, also those in use. */
  close(): Promise<void>;
}
