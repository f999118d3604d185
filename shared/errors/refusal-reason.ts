import type { SwitchyardError } from './switchyard-error.ts';

/** Why the router refused a request or a call before it asked a provider: a label of a metric. */
export const refusalReasons = [
  'invalid',
  'unauthorized',
  'no_credit',
  'forbidden',
  'requests_per_minute',
  'tokens_per_minute',
  'calls_at_once',
  'tries_per_minute',
  'no_endpoint',
  'overloaded',
  'not_ready',
] as const;
export type RefusalReason = (typeof refusalReasons)[number];

const reasonByCode: Partial<Record<SwitchyardError['code'], RefusalReason>> = {
  'request.invalid': 'invalid',
  'request.too_large': 'invalid',
  'request.unsupported_media': 'invalid',
  'router.model_unknown': 'invalid',
  'request.unauthorized': 'unauthorized',
  'router.key_refused': 'unauthorized',
  'router.payment_required': 'no_credit',
  'request.forbidden': 'forbidden',
  'router.content_policy': 'forbidden',
  'router.no_provider': 'no_endpoint',
  // Of calls that no provider was asked for.
  'router.provider_overloaded': 'overloaded',
  'service.overloaded': 'overloaded',
  'bus.full': 'overloaded',
  'service.not_ready': 'not_ready',
  'router.plugin_unavailable': 'not_ready',
  'service.no_answer': 'not_ready',
  'service.unreachable': 'not_ready',
  'bus.closed': 'not_ready',
  'storage.closed': 'not_ready',
};
const reasonByLimit: Readonly<Record<string, RefusalReason>> = {
  requests: 'requests_per_minute',
  tokens: 'tokens_per_minute',
  calls: 'calls_at_once',
};

/** Of an error, before a provider was asked. `details.limit` says which limit of its key a request is over; absent: that of its address. Null: no refusal. */
export function refusalReasonOf({ code, details }: Pick<SwitchyardError, 'code' | 'details'>): RefusalReason | null {
  if (code === 'request.rate_limited') return reasonByLimit[String(details.limit)] ?? 'tries_per_minute';
  return reasonByCode[code] ?? null;
}
