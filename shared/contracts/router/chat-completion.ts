import type { RouterMetadata } from './router-metadata.ts';

/** Responses of the router (router-api, "Chat completion response" and "Events"). The worker writes them; the gateway relays them unparsed. */

export type FinishReason = 'tool_calls' | 'stop' | 'length' | 'content_filter' | 'error';

/** Counts are integers; clients accept a missing field, not null. `prompt_tokens` includes cached ones. */
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details?: { cached_tokens: number; cache_write_tokens?: number; audio_tokens?: number; video_tokens?: number };
  completion_tokens_details?: {
    reasoning_tokens: number;
    audio_tokens?: number;
    image_tokens?: number;
    accepted_prediction_tokens?: number;
    rejected_prediction_tokens?: number;
  };
  /** What ran beside the model; absent: nothing. */
  server_tool_use?: { web_search_requests: number };
  /** The same, as newer clients read it. */
  server_tool_use_details?: { web_search_requests: number };
  /** USD; absent (never null) when the price is not known. */
  cost?: number;
  /** Always false: no provider is paid with a caller's own key. */
  is_byok?: false;
  /** USD, without fees; there when `cost` is. */
  cost_details?: { upstream_inference_cost: null; upstream_inference_prompt_cost: number; upstream_inference_completions_cost: number };
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
  /** Duplicate of the choice's: the contract has it there, clients read it here. */
  reasoning_details?: ReasoningDetail[];
  annotations?: Annotation[];
  images?: AnswerImage[];
  audio?: AnswerAudio;
  /** Absent when empty: real clients throw on null. */
  tool_calls?: ToolCall[];
}

/** A piece of a model's reasoning. `format`: its dialect; `index`: its block. */
export type ReasoningDetail = { id?: string | null; index?: number; format?: string | null } & (
  | { type: 'reasoning.summary'; summary: string }
  | { type: 'reasoning.encrypted'; data: string }
  | { type: 'reasoning.text'; text?: string | null; signature?: string | null }
);

/** What an answer was made from. */
export type Annotation = UrlCitation | FileAnnotation;

/** A source of the answer. Indexes are characters of the text. */
export interface UrlCitation {
  type: 'url_citation';
  url_citation: { url: string; title: string; content?: string; start_index?: number; end_index?: number };
}

/** What was read from a file of the request. Sent back with the answer, it spares reading the file again. */
export interface FileAnnotation {
  type: 'file';
  /** `hash`: SHA-256 of the file's bytes, in hex. */
  file: { hash: string; name: string; content: FileContent[] };
}

export type FileContent = { type: 'text'; text: string } | { type: 'image_url'; image_url: { url: string } };

/** A generated image, mostly a data URL. */
export interface AnswerImage {
  type: 'image_url';
  image_url: { url: string };
}

/** Sound, as base64, and its transcript. In chunks a piece of both. `expires_at`: epoch seconds, until which the upstream knows the id. */
export interface AnswerAudio {
  id: string;
  data?: string;
  transcript?: string;
  expires_at?: number;
}

interface TokenLogprob {
  token: string;
  logprob: number;
  /** UTF-8 bytes; null when the token has no text representation. */
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
  /** Always in the whole response; in a chunk a string, or absent. */
  system_fingerprint: string | null;
  service_tier?: string;
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

/** `code` is an integer and equals the HTTP status; `param` is the dotted path of the invalid field, `""`: none. */
export interface RouterErrorBody {
  error: { code: number; message: string; type: string; param: string; metadata?: Record<string, unknown> };
  /** Absent: it was not asked for. */
  openrouter_metadata?: RouterMetadata;
}

/** Last event of a stream that failed after the headers. If there is `metadata`, clients require `error_type` in it. */
export interface ErrorChunk {
  id: string;
  object: 'chat.completion.chunk';
  created: number;
  model: string;
  provider: string;
  error: { code: number; message: string; metadata?: { error_type: string } & Record<string, unknown> };
  choices: [{ index: 0; delta: { content: '' }; finish_reason: 'error'; native_finish_reason?: string }];
  /** Absent: it was not asked for. */
  openrouter_metadata?: RouterMetadata;
}
