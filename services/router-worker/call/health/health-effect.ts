import { type Failure, failureOf } from '#shared/errors/switchyard-error.ts';

/**
 * What an attempt says about its endpoint. `credential`: the provider refuses the operator's key or account; `permission`: it denies this model or request;
 * `missing`: it has no such model or address; `none`: nothing, since its caller or Switchyard is the cause.
 */
export type HealthEffect = 'success' | 'failure' | 'rate-limited' | 'credential' | 'permission' | 'missing' | 'none';

/** Of an attempt that failed by itself: one that was aborted says nothing. */
export function healthEffectOf(error: unknown): HealthEffect {
  const failure = failureOf(error);
  switch (failure.code) {
    case 'router.provider_unavailable':
    case 'router.provider_overloaded':
      return 'failure';
    case 'router.provider_rate_limited':
      return 'rate-limited';
    case 'router.provider_misconfigured':
      return refusalOf(failure);
    default:
      return 'none';
  }
}

function refusalOf({ details: { status } }: Failure): HealthEffect {
  switch (status) {
    case 401:
    case 402:
    // With a code that says that the account has no credit.
    case 429:
      return 'credential';
    case 403:
      return 'permission';
    default:
      return 'missing';
  }
}
