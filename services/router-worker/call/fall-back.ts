import type { ErrorCode } from '#shared/errors/switchyard-error.ts';

/** What a failure says about the candidates behind it. */
export type FallBack =
  /** It was this endpoint's own trouble. */
  | 'next-endpoint'
  /** Only an endpoint with a larger context can do better, or another model. */
  | 'larger-context'
  /** Every endpoint of this model would say the same. */
  | 'next-model';

/**
 * Before the first content part a failure may be made good by somebody else; after it never. A request that one model refuses is not
 * shown to its other endpoints, which would say the same; another model that the caller has named may take what this one doesn't.
 */
export function fallBackAfter(code: ErrorCode): FallBack {
  switch (code) {
    case 'router.context_length':
      return 'larger-context';
    case 'router.provider_refused':
    case 'router.content_policy':
    case 'request.too_large':
      return 'next-model';
    default:
      return 'next-endpoint';
  }
}
