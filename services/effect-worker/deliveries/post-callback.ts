import type { GuardedPoster } from '#shared/http/guarded-post.ts';
import type { StoredDelivery } from './delivery-rows.ts';
import { type Attempt, postOnce } from './post-once.ts';

export interface PostOptions {
  /** The agent's key. */
  apiKey: string;
  attempt: number;
  traceparent: string | null;
  timeoutMs: number;
  signal: AbortSignal;
}

/** Posts a callback once. @throws the signal's reason after an abort */
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
  return postOnce(poster, { url: delivery.url, hostAllowlist: delivery.hostAllowlist, headers, body, timeoutMs, signal });
}
