import type { EndReasons } from '#services/work/running-items.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CallRefusal } from './call-credit.ts';

/** How long a client may wait before it sends a large request again. */
const OVERLOADED_RETRY_MS = 1_000;

/** Of a call that is aborted. */
export const callEndReasons: EndReasons = {
  cancelled: () => new SwitchyardError('router.cancelled', 'the call was cancelled'),
  deadline: () => new SwitchyardError('router.timeout', 'the call exceeded its time limit'),
  'lease-lost': () => new SwitchyardError('router.cancelled', 'the worker lost the lease of the call'),
};

/** Of a call whose earlier worker had shown content. */
export function workerDied(): SwitchyardError {
  return new SwitchyardError('router.provider_unavailable', 'the worker died in the middle of the answer');
}

/** Of a call that is not executed. */
export function refusalError(refusal: CallRefusal): SwitchyardError {
  switch (refusal.why) {
    case 'key':
      return refusal.error;
    case 'cancelled':
      return callEndReasons.cancelled();
    case 'deadline':
      return callEndReasons.deadline();
    case 'overloaded':
      return new SwitchyardError('router.provider_overloaded', 'Too many large requests are in flight', { details: { retryAfterMs: OVERLOADED_RETRY_MS } });
    case 'given-up':
      return new SwitchyardError('router.provider_unavailable', 'the call was given up after 5 tries');
  }
}
