import type { ErrorCode } from '#shared/errors/switchyard-error.ts';

/** Which candidates remain after a failure before the commit point. */
export type FallBack =
  /** It concerns this endpoint alone. */
  | 'next-endpoint'
  /** Of the same model, only endpoints with a larger context remain. */
  | 'larger-context'
  /** Every endpoint of this model would fail alike. */
  | 'next-model';

/** A model that refuses a request does so at all endpoints; another model may accept it. */
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
