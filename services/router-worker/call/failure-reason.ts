import type { Failure } from '#shared/errors/switchyard-error.ts';

/** What a status of a provider means, in our words: its own may quote the request. */
const STATUS_REASONS: Readonly<Record<number, string>> = {
  400: 'it calls the request invalid',
  401: 'it refuses the credential',
  402: 'its account has no credit',
  403: 'it refuses permission',
  404: 'it has no such model or address',
  408: 'it was too slow by its own measure',
  413: 'it calls the request too large',
  422: 'it calls the request invalid',
  429: 'it limits the rate',
  503: 'it is overloaded',
  529: 'it is overloaded',
};

/** A code is a word; a sentence in its place may be anybody's. */
const CODE = /^[\w.:-]{1,64}$/;

/**
 * Why a try at a provider failed, for the log: nothing in it is text of the provider, since that may quote a customer.
 * `provider_code` is absent when the provider gave none, or no word.
 */
export function failureReason({ message, details }: Failure): { status?: number; reason: string; provider_code?: string } {
  const { providerCode, raw, reason, status } = details;
  const code = typeof providerCode === 'string' && CODE.test(providerCode) ? { provider_code: providerCode } : {};
  if (typeof status === 'number') return { status, reason: STATUS_REASONS[status] ?? `it answered ${status}`, ...code };
  if (typeof reason === 'string') return { reason, ...code };
  return { reason: raw === undefined ? message : 'it sent an error', ...code };
}
