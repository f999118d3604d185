import type { Usage } from '../../contracts/router/chat-completion.ts';
import type { ResponseUsage } from '../../contracts/router/response-object.ts';

/** The same counts under the names of this API. */
export function responseUsageOf(usage: Usage): ResponseUsage {
  const { prompt_tokens_details: read, completion_tokens_details: made, cost_details: details } = usage;
  return {
    input_tokens: usage.prompt_tokens,
    input_tokens_details: {
      cached_tokens: read?.cached_tokens ?? 0,
      ...(read?.cache_write_tokens !== undefined && { cache_write_tokens: read.cache_write_tokens }),
    },
    output_tokens: usage.completion_tokens,
    output_tokens_details: { reasoning_tokens: made?.reasoning_tokens ?? 0 },
    total_tokens: usage.total_tokens,
    ...(usage.cost !== undefined && { cost: usage.cost }),
    ...(usage.is_byok !== undefined && { is_byok: usage.is_byok }),
    ...(details !== undefined && {
      cost_details: {
        upstream_inference_cost: details.upstream_inference_cost,
        upstream_inference_input_cost: details.upstream_inference_prompt_cost,
        upstream_inference_output_cost: details.upstream_inference_completions_cost,
      },
    }),
  };
}

/** Back again, for what is billed of a lost worker's answer. Null: not such a usage. */
export function chatUsageIn(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('input_tokens' in value)) return null;
  const { input_tokens, input_tokens_details, output_tokens, output_tokens_details, cost } = value as Partial<ResponseUsage>;
  return {
    prompt_tokens: input_tokens,
    prompt_tokens_details: input_tokens_details,
    completion_tokens: output_tokens,
    completion_tokens_details: output_tokens_details,
    cost,
  };
}
