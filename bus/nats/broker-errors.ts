import { JetStreamApiCodes, JetStreamApiError } from '@nats-io/jetstream';
import { AuthorizationError, ClosedConnectionError, InvalidArgumentError, PermissionViolationError, RequestError } from '@nats-io/transport-node';

/** The broker could not store: this code covers a full stream, but other reasons, too. */
const STORE_FAILED = 10077;
/** The disk or the memory that the broker may use is full. */
const NO_RESOURCES: readonly number[] = [10023, 10028, 10047];

/**
 * What to do about an error of the broker: `full` give up, the stream holds what it may; `missing` declare the streams anew, then again;
 * `again` it may pass; `never` it won't.
 */
export type Verdict = 'full' | 'missing' | 'again' | 'never';

export function verdictOn(error: unknown): Verdict {
  if (error instanceof JetStreamApiError) {
    if (error.code === STORE_FAILED && /maximum/.test(error.message)) return 'full';
    if (lacksResources(error)) return 'full';
    if (isStreamMissing(error)) return 'missing';
    return error.status >= 500 ? 'again' : 'never';
  }
  if (isDenied(error) || error instanceof ClosedConnectionError || error instanceof InvalidArgumentError) return 'never';
  if (hasNoResponders(error)) return 'missing';
  return 'again';
}

/** Whether the broker has no room for a stream, or says so of one that another process is just creating. */
export function lacksResources(error: unknown): boolean {
  return error instanceof JetStreamApiError && NO_RESOURCES.includes(error.code);
}

export function isStreamMissing(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound;
}

/** Whether the broker refused who we say we are. */
export function isRefusal(error: unknown): boolean {
  return error instanceof AuthorizationError;
}

/** Whether our user may not do this. */
function isDenied(error: unknown): boolean {
  return [error, causeOf(error)].some((one) => one instanceof PermissionViolationError);
}

/** Nobody listens there: the stream is not declared, or the broker has no JetStream. */
function hasNoResponders(error: unknown): boolean {
  return [error, causeOf(error)].some((one) => one instanceof RequestError && one.isNoResponders());
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}
