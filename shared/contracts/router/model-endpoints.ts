import type { ModelEntry, ModelPricing } from './model-list.ts';

export interface PercentileEntry {
  p50: number;
  p75: number;
  p90: number;
  p99: number;
}

/** A model at one provider. Null: not measured or not known. */
export interface EndpointEntry {
  /** Display name, `<provider> | <model>`. */
  name: string;
  model_id: string;
  model_name: string;
  provider_name: string;
  /** The endpoint's slug, as in `provider.order`, `only` and `ignore` of requests. */
  tag: string;
  /** Tokens; 0: not known, since clients require a number. */
  context_length: number;
  pricing: ModelPricing;
  quantization: string | null;
  max_completion_tokens: number | null;
  max_prompt_tokens: null;
  supported_parameters: string[];
  /** 0: no known fault; -1: it fails often; -2: it is asked last at present. */
  status: 0 | -1 | -2;
  /** Percent of the attempts that it did not fail. */
  uptime_last_30m: number | null;
  uptime_last_5m: number | null;
  /** Not measured. */
  uptime_last_1d: number | null;
  supports_implicit_caching: boolean;
  supports_tool_choice: Record<'none' | 'auto' | 'required' | 'function', boolean>;
  /** Milliseconds to the first token. */
  latency_last_30m: PercentileEntry | null;
  /** Tokens per second. */
  throughput_last_30m: PercentileEntry | null;
}

/** Response of GET /api/v1/endpoints/zdr. */
export interface EndpointList {
  data: EndpointEntry[];
}

/** Response of GET /api/v1/models/<id>/endpoints. */
export interface ModelEndpoints {
  data: Pick<ModelEntry, 'id' | 'name' | 'created' | 'description' | 'architecture'> & { endpoints: EndpointEntry[] };
}
