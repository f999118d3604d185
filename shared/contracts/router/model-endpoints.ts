import type { ModelEntry, ModelPricing } from './model-list.ts';

/** One place where a model is served. What is not measured or not known is null. */
export interface EndpointEntry {
  /** `<provider> | <model>`, for people. */
  name: string;
  model_id: string;
  model_name: string;
  provider_name: string;
  /** The provider's slug, as requests name it in `provider.order`, `only` and `ignore`. */
  tag: string;
  /** Tokens; 0 when it is not known: clients insist on a number here. */
  context_length: number;
  pricing: ModelPricing;
  quantization: string | null;
  max_completion_tokens: number | null;
  max_prompt_tokens: null;
  supported_parameters: string[];
  /** 0: nothing is wrong with it that we know of. */
  status: 0;
  uptime_last_30m: null;
  uptime_last_5m: null;
  uptime_last_1d: null;
  supports_implicit_caching: boolean;
  /** Which forms of `tool_choice` it takes. */
  supports_tool_choice: Record<'none' | 'auto' | 'required' | 'function', boolean>;
  latency_last_30m: null;
  throughput_last_30m: null;
}

/** The answer of GET /api/v1/models/<id>/endpoints. */
export interface ModelEndpoints {
  data: Pick<ModelEntry, 'id' | 'name' | 'created' | 'description' | 'architecture'> & { endpoints: EndpointEntry[] };
}
