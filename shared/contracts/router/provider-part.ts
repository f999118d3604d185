import type { Annotation, FinishReason, Logprobs } from './chat-completion.ts';
import type { PricedField } from './priced-fields.ts';

/** What an adapter yields, in any dialect. A plain text is `{ type, text }` and nothing else: its shape is that of nearly all parts. */
export type ProviderPart =
  | ({ type: 'response-metadata' } & ResponseMetadata)
  /** No delta is empty. `logprobs`: only when requested and given by the upstream. `block`: absent where the upstream numbers none. */
  | { type: 'text-delta'; text: string; logprobs?: Logprobs; block?: ContentBlock }
  | ReasoningPart
  | { type: 'refusal-delta'; text: string; logprobs?: Logprobs }
  | { type: 'annotation'; annotation: Annotation; block?: ContentBlock }
  /** `url`: a data URL, or an address of the upstream. */
  | { type: 'image'; url: string; block?: ContentBlock }
  /** A piece of sound, base64 of whole bytes, and of its transcript, either of which may be missing. `expiresAt`: epoch seconds. */
  | { type: 'audio-delta'; id: string; data: string | null; transcript: string | null; expiresAt?: number }
  /** `index` is our number of the tool call, from 0. */
  | { type: 'tool-call-start'; index: number; id: string; name: string }
  | { type: 'tool-call-delta'; index: number; arguments: string }
  /** A tool that the upstream itself runs; `arguments` is JSON. */
  | { type: 'server-tool-call'; id: string; name: string; arguments: string }
  | { type: 'server-tool-result'; id: string; name: string; result: unknown }
  /** Vectors of the next inputs, in order, each as JSON in the format that the call asks for. Of calls for vectors alone. */
  | { type: 'vectors'; vectors: readonly string[] }
  /** At most one, the first: fields of the endpoint's request that its upstream did not get. Absent: it got all. */
  | { type: 'fields-omitted'; names: readonly PricedField[] }
  | { type: 'usage'; usage: ProviderUsage }
  /** At most one, before the end: for an answer that breaks off. `read` gives what the upstream has counted by then, so that no part per count is needed. */
  | { type: 'usage-so-far'; read: UsageSoFar }
  /** Exactly one: a stream without it was cut off. */
  | { type: 'finish'; reason: FinishReason; nativeReason: string | null };

/**
 * What an upstream says of the whole answer; null: nothing. Chunks state what came with or before the first content, the last chunks and whole answers what came
 * last.
 */
export interface ResponseMetadata {
  /** The upstream's id of the answer. */
  id: string | null;
  systemFingerprint: string | null;
  /** The tier that served the request. */
  serviceTier: string | null;
}

/** Reasoning of an answer has blocks, or none has; where an upstream mixes both, the rest counts as one block. */
export type ReasoningPart =
  | { type: 'reasoning-delta'; text: string; block?: ReasoningBlock }
  | { type: 'reasoning-summary-delta'; text: string; block: ReasoningBlock }
  /** Of the whole block's text; the upstream requires both back, unchanged. */
  | { type: 'reasoning-signature'; signature: string; block: ReasoningBlock }
  /** Reasoning that only the upstream can read: redacted, or encrypted for its return. The block's id may be that of a tool call. */
  | { type: 'reasoning-encrypted'; data: string; block: ReasoningBlock };

/** A block of content. One object per block, which its parts share. */
interface ContentBlock {
  /** From 0, counted over all blocks of the answer. */
  index: number;
  /** The upstream's; null: it has none. */
  id: string | null;
}

export interface ReasoningBlock extends ContentBlock {
  /** The dialect that understands the block when it is sent back, such as `anthropic-claude-v1`. */
  format: string;
}

/** Counts that have not come are absent. */
export type UsageSoFar = () => Partial<ProviderUsage>;

/** Optional counts are absent where the upstream reports none. */
export interface ProviderUsage {
  /** With those read from and written to a cache. */
  promptTokens: number;
  completionTokens: number;
  cachedTokens: number;
  cacheWriteTokens?: number;
  /** Part of `cacheWriteTokens`: those kept for an hour instead of minutes. */
  cacheWrite1hTokens?: number;
  promptAudioTokens?: number;
  promptVideoTokens?: number;
  /** Part of `completionTokens`, as are those of sound and pictures. */
  reasoningTokens: number;
  completionAudioTokens?: number;
  completionImageTokens?: number;
  /** Of the request's `prediction`. */
  acceptedPredictionTokens?: number;
  rejectedPredictionTokens?: number;
  /** Searches of the web that the upstream has made by itself. */
  webSearches?: number;
  /** In billionths of a US dollar: what an upstream that bills its caller itself charges. Absent: prices of the endpoint decide. */
  billedNano?: number;
}
