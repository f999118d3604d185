import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { GuardedPoster } from '#shared/http/guarded-post.ts';
import type { StoredDelivery } from './delivery-rows.ts';

export interface PostOptions {
  /** The agent's key. */
  apiKey: string;
  attempt: number;
  traceparent: string | null;
  timeoutMs: number;
  signal: AbortSignal;
}

/** `reason` contains nothing of the response body. */
export type Attempt = { /** Null: no response. */ status: number | null } & (
  | { delivered: true }
  | {
      delivered: false;
      reason: string;
      retryAfterMs: number | null;
      /** Requested without a response. */
      isSilent: boolean;
    }
);

/**
 * Posts a callback once. Only 2xx is a success; redirects are not followed. A refused address is a failed attempt, not the end:
 * the name may resolve to another address later.
 * @throws the signal's reason after an abort
 */
export async function postCallback(poster: Pick<GuardedPoster, 'post'>, delivery: StoredDelivery, options: PostOptions): Promise<Attempt> {
  const { apiKey, attempt, traceparent, timeoutMs, signal } = options;
  const headers = {
    authorization: `Bearer ${apiKey}`,
    'content-type': 'application/json',
    'x-run-id': delivery.runId,
    'x-switchyard-attempt': String(attempt),
    ...(traceparent === null ? {} : { traceparent }),
  };
  const body = Buffer.from(delivery.body, 'utf8');
  try {
    const { status, retryAfterMs } = await poster.post({ url: delivery.url, hostAllowlist: delivery.hostAllowlist, headers, body, timeoutMs, signal });
    failPoint('delivery.posted');
    if (status >= 200 && status < 300) return { status, delivered: true };
    return { status, delivered: false, reason: `the receiver answered ${status}`, retryAfterMs, isSilent: false };
  } catch (error) {
    if (signal.aborted) throw error;
    return {
      status: null,
      delivered: false,
      reason: reasonOf(error),
      retryAfterMs: null,
      isSilent: error instanceof SwitchyardError && error.code === 'outbound.failed',
    };
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof SwitchyardError)) return 'the request failed';
  if (error.code === 'outbound.refused') return `the address was refused: ${error.message}`;
  const why = error.details['reason'];
  return typeof why === 'string' ? `the receiver can't be reached (${why})` : "the receiver can't be reached";
}
