/** Shapes that the router sends (router-api, "Chat completion response" and "Events"). Written by the worker, relayed unread by the gateway. */

export type FinishReason = 'tool_calls' | 'stop' | 'length' | 'content_filter' | 'error';

/** All counts are integers, and never null: clients take a missing one, not an empty one. `prompt_tokens` includes cached ones. */
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details?: { cached_tokens: number; audio_tokens?: number; video_tokens?: number };
  completion_tokens_details?: {
    reasoning_tokens: number;
    audio_tokens?: number;
    accepted_prediction_tokens?: number;
    rejected_prediction_tokens?: number;
  };
  /** USD. Absent when the price is not known, never null. */
  cost?: number;
}

export interface ToolCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

export interface AssistantMessage {
  role: 'assistant';
  content: string | null;
  refusal: string | null;
  reasoning?: string;
  /** The same as on the choice: the contract has it there, clients read it here. */
  reasoning_details?: ReasoningDetail[];
  /** Absent when there are none: null here throws in real clients. */
  tool_calls?: ToolCall[];
}

/** A piece of a model's reasoning. `format` names the dialect it came in; `index` tells pieces of different blocks apart. */
export type ReasoningDetail = { id?: string | null; index?: number; format?: string | null } & (
  | { type: 'reasoning.summary'; summary: string }
  | { type: 'reasoning.encrypted'; data: string }
  | { type: 'reasoning.text'; text?: string | null; signature?: string | null }
);

interface TokenLogprob {
  token: string;
  logprob: number;
  /** UTF-8 bytes of the token; null when it is no text of its own. */
  bytes: number[] | null;
}

export interface Logprobs {
  content: (TokenLogprob & { top_logprobs: TokenLogprob[] })[] | null;
  refusal: (TokenLogprob & { top_logprobs: TokenLogprob[] })[] | null;
}

export interface ChatCompletion {
  id: string;
  object: 'chat.completion';
  created: number;
  model: string;
  provider: string;
  /** Always there in the whole answer, never in a chunk. */
  system_fingerprint: string | null;
  choices: {
    index: number;
    finish_reason: FinishReason | null;
    native_finish_reason: string | null;
    logprobs: Logprobs | null;
    message: AssistantMessage;
    reasoning_details?: ReasoningDetail[];
    error?: RouterErrorBody['error'];
  }[];
  usage?: Usage;
}

/** `code` is an integer and equals the HTTP status; `param` is the dotted path of the offending field, `""` when there is none. */
export interface RouterErrorBody {
  error: { code: number; message: string; type: string; param: string; metadata?: Record<string, unknown> };
}

/** The last event of a stream that broke after its headers were sent. `metadata`, when there, names the `error_type`: clients insist. */
export interface ErrorChunk {
  id: string;
  object: 'chat.completion.chunk';
  created: number;
  model: string;
  provider: string;
  error: { code: number; message: string; metadata?: { error_type: string } & Record<string, unknown> };
  choices: [{ index: 0; delta: { content: '' }; finish_reason: 'error'; native_finish_reason?: string }];
}
