/** Responses of GET /api/v1/models, one entry per model, in the superset that known clients read. */

/** USD per token, as decimal strings, which lose no precision. `-1`: not known. */
export interface ModelPricing {
  prompt: string;
  completion: string;
  /** USD per call. */
  request?: string;
  /** USD per picture. */
  image?: string;
  /** USD per recording. */
  audio?: string;
  web_search?: string;
  input_cache_read?: string;
  input_cache_write?: string;
  input_cache_write_1h?: string;
}

export interface ModelEntry {
  id: string;
  object: 'model';
  owned_by: string;
  canonical_slug: string;
  name: string;
  /** Epoch seconds; required by clients. */
  created: number;
  description: string;
  /** Tokens; null: not known. */
  context_length: number | null;
  architecture: { modality: string | null; input_modalities: string[]; output_modalities: string[]; tokenizer: string; instruct_type: null };
  pricing: ModelPricing;
  top_provider: { context_length: number | null; max_completion_tokens: number | null; is_moderated: boolean };
  per_request_limits: null;
  supported_parameters: string[];
  default_parameters: null;
  /** No model has speech output. */
  supported_voices: null;
  links: { details: string };
}

/** Response of GET /api/v1/models/<id>: at the top level for OpenAI clients, in `data` for others. */
export type ModelAnswer = ModelEntry & { data: ModelEntry };

export interface ModelList {
  object: 'list';
  data: ModelEntry[];
  /** Path of the next page; null: this is the last one. */
  links: { next: string | null };
  /** Of all pages. */
  total_count: number;
}

/** Response of GET /api/v1/providers. */
export interface ProviderList {
  data: { name: string; slug: string; privacy_policy_url: string | null; terms_of_service_url: string | null; status_page_url: string | null }[];
}
