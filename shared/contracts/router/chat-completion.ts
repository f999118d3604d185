/** Shapes that the router sends (router-api, "Chat completion response" and "Events"). Written by the worker, relayed unread by the gateway. */

export type FinishReason = 'tool_calls' | 'stop' | 'length' | 'content_filter' | 'error';

/** All counts are integers. `prompt_tokens` includes cached ones. */
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details?: { cached_tokens: number; audio_tokens?: number; video_tokens?: number };
  completion_tokens_details?: { reasoning_tokens: number; audio_tokens?: number };
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
  /** Absent when there are none: null here throws in real clients. */
  tool_calls?: ToolCall[];
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
    finish_reason: FinishReason;
    native_finish_reason: string | null;
    logprobs: null;
    message: AssistantMessage;
    error?: RouterErrorBody['error'];
  }[];
  usage?: Usage;
}

/** `code` is an integer and equals the HTTP status; `param` is the dotted path of the offending field, `""` when there is none. */
export interface RouterErrorBody {
  error: { code: number; message: string; type: string; param: string; metadata?: Record<string, unknown> };
}
