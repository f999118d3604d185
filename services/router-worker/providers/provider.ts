import type { FinishReason, Logprobs } from '#shared/contracts/router/chat-completion.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { CallSignal } from '../call-signal.ts';

/** One thing a provider said, whatever its dialect. Names are noun-verb. */
export type ProviderPart =
  /** Never empty, and neither are the other deltas. `logprobs`: only when the request asked and the upstream gave them. */
  | { type: 'text-delta'; text: string; logprobs?: Logprobs }
  | { type: 'reasoning-delta'; text: string }
  | { type: 'refusal-delta'; text: string }
  /** `index` is our own running number of the tool call in this answer, from 0. */
  | { type: 'tool-call-start'; index: number; id: string; name: string }
  | { type: 'tool-call-delta'; index: number; arguments: string }
  | { type: 'usage'; usage: ProviderUsage }
  /** Exactly one, before the stream ends: a stream without it was cut. */
  | { type: 'finish'; reason: FinishReason; nativeReason: string | null };

export interface ProviderUsage {
  promptTokens: number;
  completionTokens: number;
  cachedTokens: number;
  reasoningTokens: number;
}

export interface ProviderCall {
  /** The upstream's own name of the model. */
  model: string;
  /** Only parameters that the endpoint supports are left in it. */
  request: ChatRequest;
  timeouts: ProviderTimeouts;
  /** Whether its parts are shown as they come; absent: they are collected into a whole answer. */
  isStreamed?: boolean;
}

/** All in milliseconds. The total is the caller's, through the signal. */
export interface ProviderTimeouts {
  connectMs: number;
  /** From the request to the first content part. */
  firstTokenMs: number;
  /** Longest silence between two reads after that. */
  idleMs: number;
}

/** Hears what a provider says. @returns false when nothing more is wanted: what is behind the call is closed at once, and it ends. Never throws */
export type PartHandler = (parts: readonly ProviderPart[]) => boolean;

export interface ProviderAdapter {
  /** The slug of the provider in the router's configuration. */
  readonly slug: string;
  /**
   * Calls the model and says what it says, a batch for each piece of the body that brings some. Whoever hears it is called, and no promise
   * made for a token.
   * Resolves after a `finish` part; `usage` may come before it or after it, and the last one counts.
   * @throws SwitchyardError with a `router.*` code; `details` may hold `status` (upstream's), `raw` (its error as parsed JSON or text),
   *   `providerCode`, `retryAfterMs`, and `connection: 'reset'` when a connection broke before the upstream had said anything. A stream that ends without `finish` throws `router.provider_unavailable`.
   *   When the signal aborts, the upstream connection is closed at once and the signal's reason is thrown.
   */
  stream(call: ProviderCall, signal: CallSignal, onParts: PartHandler): Promise<void>;
  /** The body that `stream` would send, as JSON, for callers that ask to see it. It holds no credential of ours. */
  upstreamBody(call: Pick<ProviderCall, 'model' | 'request'>): Record<string, unknown>;
}
