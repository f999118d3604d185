import type { ErrorCode } from '#shared/errors/switchyard-error.ts';

/** Which of the remaining candidates can still succeed. */
export type FallBack =
  /** The failure concerns this endpoint alone. */
  | 'next-endpoint'
  /** Other endpoints of this model need a larger context; other models stay. */
  | 'larger-context'
  /** Every endpoint of this model would refuse it. */
  | 'next-model';

/**
 * Which candidates remain after a failure before the first content part; after it there is no fallback. A request that one model refuses skips its other
 * endpoints, while another model that the caller named may accept it.
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
