import type { FileContent } from './chat-completion.ts';

/** Responses of the router's second dialect (POST /responses). Keys that clients require are there, null where nothing is known. */

/** Events of a failure behind content. The second is that of the contract's table, which clients of today do not read. */
export const failureEvents = ['response.failed', 'response.error'] as const;
export type FailureEvent = (typeof failureEvents)[number];

export type ResponseStatus = 'completed' | 'incomplete' | 'in_progress' | 'failed';
type ItemStatus = 'completed' | 'incomplete' | 'in_progress';

export type ResponseAnnotation = ResponseUrlCitation | ResponseFileCitation;

/** What was read from a file of the request, in the form of a citation of the file, which clients know. Sent back, it spares reading the file again. */
interface ResponseFileCitation {
  type: 'file_citation';
  /** SHA-256 of the file's bytes, in hex. */
  file_id: string;
  filename: string;
  /** In the text: files have no place in it. */
  index: 0;
  content: FileContent[];
}

/** A source of the text; indexes are characters of it. */
interface ResponseUrlCitation {
  type: 'url_citation';
  url: string;
  title: string;
  start_index: number;
  end_index: number;
  content?: string;
}

interface AlternativeToken {
  token: string;
  logprob: number;
  bytes: number[];
}
export interface ResponseLogprob extends AlternativeToken {
  top_logprobs: AlternativeToken[];
}

export interface OutputText {
  type: 'output_text';
  text: string;
  annotations: ResponseAnnotation[];
  logprobs: ResponseLogprob[];
}
export interface OutputRefusal {
  type: 'refusal';
  refusal: string;
}

export interface OutputMessage {
  type: 'message';
  id: string;
  role: 'assistant';
  status: ItemStatus;
  content: (OutputText | OutputRefusal)[];
}

export interface OutputFunctionCall {
  type: 'function_call';
  id: string;
  /** The model's id of the call, which its output names. */
  call_id: string;
  name: string;
  arguments: string;
  status: ItemStatus;
}

/** `format` is the dialect that reads it when it is sent back; `signature` belongs to the text. */
export interface OutputReasoning {
  type: 'reasoning';
  id: string;
  summary: { type: 'summary_text'; text: string }[];
  content: { type: 'reasoning_text'; text: string }[];
  encrypted_content: string | null;
  signature: string | null;
  format: string;
  status: ItemStatus;
}

interface OutputImage {
  type: 'image_generation_call';
  id: string;
  status: ItemStatus;
  /** Base64, or an address of the upstream; null until it is there. */
  result: string | null;
}

export type OutputItem = OutputMessage | OutputFunctionCall | OutputReasoning | OutputImage;

/** The closed list of this API, of which errors of the router are a part. */
export type ResponseErrorCode = 'server_error' | 'rate_limit_exceeded' | 'invalid_prompt' | 'image_content_policy_violation';

export interface ResponseUsage {
  input_tokens: number;
  input_tokens_details: { cached_tokens: number; cache_write_tokens?: number };
  output_tokens: number;
  output_tokens_details: { reasoning_tokens: number };
  total_tokens: number;
  /** USD; absent when the price is not known, as `cost_details` is. */
  cost?: number;
  is_byok?: false;
  cost_details?: { upstream_inference_cost: null; upstream_inference_input_cost: number; upstream_inference_output_cost: number };
}

/** What the request said, or what holds without it. The same in every response object of an answer. */
export interface StatedFields {
  instructions: string | null;
  metadata: Record<string, unknown> | null;
  tools: { type: 'function'; name: string; description: string | null; parameters: Record<string, unknown> | null; strict: boolean | null }[];
  tool_choice: 'auto' | 'none' | 'required' | { type: 'function'; name: string };
  parallel_tool_calls: boolean;
  temperature: number | null;
  top_p: number | null;
  presence_penalty: number | null;
  frequency_penalty: number | null;
  max_output_tokens: number | null;
  max_tool_calls: null;
  previous_response_id: null;
  reasoning: { effort: string | null; summary?: string } | null;
  store: false;
  text: { format: StatedFormat; verbosity?: string };
  top_logprobs: number;
  truncation: 'disabled';
  background: false;
  prompt_cache_key: string | null;
  safety_identifier: string | null;
  user: string | null;
  prompt: null;
}

export type StatedFormat =
  | { type: 'text' | 'json_object' | 'grammar' | 'python' }
  | { type: 'json_schema'; name: string; description?: string; schema: Record<string, unknown>; strict: boolean | null };

export interface ResponseObject extends StatedFields {
  id: string;
  object: 'response';
  /** Epoch seconds. */
  created_at: number;
  /** Epoch seconds; null unless it is completed. */
  completed_at: number | null;
  status: ResponseStatus;
  model: string;
  provider: string;
  output: OutputItem[];
  output_text: string;
  error: { code: ResponseErrorCode; message: string } | null;
  /** Of a failed response: our own, more exact type. */
  error_type?: string;
  incomplete_details: { reason: 'max_output_tokens' | 'content_filter' } | null;
  /** The tier that served it; null: not known. */
  service_tier: string | null;
  /** Null while it runs. */
  usage: ResponseUsage | null;
}
