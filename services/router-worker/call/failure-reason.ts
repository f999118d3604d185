import type { Failure } from '#shared/errors/switchyard-error.ts';

/** In our words: the provider's may quote the request. */
const STATUS_REASONS: Readonly<Record<number, string>> = {
  400: 'it rejects the request as invalid',
  401: 'it refuses the credential',
  402: 'its account has no credit',
  403: 'it denies permission',
  404: 'it has no such model or address',
  408: 'it timed out',
  413: 'it rejects the request as too large',
  422: 'it rejects the request as invalid',
  429: 'the rate limit is exceeded',
  503: 'it is overloaded',
  529: 'it is overloaded',
};

/** A longer text may quote a customer. */
const CODE = /^[\w.:-]{1,64}$/;

/** Why an attempt failed, for the log, without the provider's text, which may quote a customer. `provider_code` is absent unless it is one word. */
export function failureReason({ message, details }: Failure): { status?: number; reason: string; provider_code?: string } {
  const { providerCode, raw, reason, status } = details;
  const code = typeof providerCode === 'string' && CODE.test(providerCode) ? { provider_code: providerCode } : {};
  if (typeof status === 'number') return { status, reason: STATUS_REASONS[status] ?? `it answered ${status}`, ...code };
  if (typeof reason === 'string') return { reason, ...code };
  return { reason: raw === undefined ? message : 'it sent an error', ...code };
}
