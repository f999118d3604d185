import type { EndpointConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ModelEndpoint } from './model-endpoint.ts';
import { supportsAll } from './parameters.ts';

/** An endpoint without a known format is mostly the author's own, and may have any: between full precision and what is known to be less. */
const UNKNOWN_RANK = 1;
const RANKS: Readonly<Record<NonNullable<EndpointConfig['quantization']>, number>> = {
  fp32: 0,
  bf16: 0,
  fp16: 0,
  fp8: 2,
  int8: 2,
  fp6: 3,
  fp4: 4,
  int4: 4,
};

/** Sort keys of `provider.sort: 'exacto'`, lowest first: none of the request's parameters is dropped, then the precision of the weights. */
export function qualityRanks(request: ChatRequest): ((modelEndpoint: ModelEndpoint) => number)[] {
  return [
    (modelEndpoint) => (supportsAll(modelEndpoint, request) ? 0 : 1),
    ({ endpoint: { quantization } }) => (quantization === undefined ? UNKNOWN_RANK : RANKS[quantization]),
  ];
}
