import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { GuardedPost, GuardedPoster } from '#shared/http/guarded-post.ts';

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
 * One attempt. Only 2xx is a success; redirects are not followed. A refused address is a failed attempt, not the end: the name may resolve to
 * another address later.
 * @throws the signal's reason after an abort
 */
export async function postOnce(poster: Pick<GuardedPoster, 'post'>, post: GuardedPost & { signal: AbortSignal }): Promise<Attempt> {
  try {
    const { status, retryAfterMs } = await poster.post(post);
    failPoint('delivery.posted');
    if (status >= 200 && status < 300) return { status, delivered: true };
    return { status, delivered: false, reason: `the receiver answered ${status}`, retryAfterMs, isSilent: false };
  } catch (error) {
    if (post.signal.aborted) throw error;
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
