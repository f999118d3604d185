/** Shapes of GET /api/v1/models: one model per entry, in the superset that the known clients read. */

/** USD per token, as decimal texts so that no digit is lost. `-1` says that the price is not known. */
export interface ModelPricing {
  prompt: string;
  completion: string;
  /** USD per call. */
  request?: string;
  input_cache_read?: string;
}

export interface ModelEntry {
  id: string;
  object: 'model';
  owned_by: string;
  canonical_slug: string;
  name: string;
  /** Epoch seconds. Required by clients. */
  created: number;
  description: string;
  /** Tokens; null when it is not known. */
  context_length: number | null;
  architecture: { modality: string | null; input_modalities: string[]; output_modalities: string[]; tokenizer: string; instruct_type: null };
  pricing: ModelPricing;
  top_provider: { context_length: number | null; max_completion_tokens: number | null; is_moderated: boolean };
  per_request_limits: null;
  supported_parameters: string[];
  default_parameters: null;
  /** No model of ours speaks. */
  supported_voices: null;
  links: { details: string };
}

/** The answer of GET /api/v1/models/<id>: at the top as clients of OpenAI's API read it, and in `data` as others do. */
export type ModelAnswer = ModelEntry & { data: ModelEntry };

export interface ModelList {
  object: 'list';
  data: ModelEntry[];
  /** All models stand on one page. */
  links: { next: null };
  total_count: number;
}
