import type { ErrorCode } from '#shared/errors/switchyard-error.ts';

/** What a failure says about the candidates behind it. */
export type FallBack =
  /** It was this endpoint's own trouble. */
  | 'next-endpoint'
  /** Only an endpoint with a larger context can do better, or another model. */
  | 'larger-context'
  /** Every endpoint of this model would say the same. */
  | 'next-model'
  /** Everybody would say the same. */
  | 'stop';

/**
 * Before the first content part a failure may be made good by somebody else; after it never. A request that is at
 * fault itself is refused at once: asking on would cost time, and hide the reason.
 */
export function fallBackAfter(code: ErrorCode): FallBack {
  switch (code) {
    case 'router.provider_refused':
    case 'request.too_large':
      return 'stop';
    case 'router.context_length':
      return 'larger-context';
    case 'router.content_policy':
      return 'next-model';
    default:
      return 'next-endpoint';
  }
}
