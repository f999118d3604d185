import { JetStreamApiCodes, JetStreamApiError } from '@nats-io/jetstream';
import { AuthorizationError, ClosedConnectionError, InvalidArgumentError, PermissionViolationError, RequestError } from '@nats-io/transport-node';

/** Store failed: a full stream, among other causes. */
const STORE_FAILED = 10077;
/** The broker's disk or memory limit is reached. */
const NO_RESOURCES: readonly number[] = [10023, 10028, 10047];

/** A cluster has fewer servers than replicas at this moment, as while its servers start. */
const TOO_FEW_SERVERS = 10005;
/** The broker is a single server, and the stream has several replicas. */
const NO_CLUSTER = 10074;

/** The stream's leader has a message with this id that it has not stored, and may never store. */
export class InProcessError extends Error {
  constructor() {
    super('the broker has a message with this id that it has not stored yet');
  }
}

/** How to handle an error of the broker. `full`: a limit is reached. `missing`: declare the streams, then retry. `again`: transient. `never`: permanent. */
export type Verdict = 'full' | 'missing' | 'again' | 'never';

export function verdictOn(error: unknown): Verdict {
  if (error instanceof JetStreamApiError) {
    if (error.code === STORE_FAILED && /maximum/.test(error.message)) return 'full';
    if (lacksResources(error)) return 'full';
    if (isStreamMissing(error)) return 'missing';
    if (error.code === TOO_FEW_SERVERS) return 'again';
    return error.status >= 500 ? 'again' : 'never';
  }
  if (isDenied(error) || error instanceof ClosedConnectionError || error instanceof InvalidArgumentError) return 'never';
  if (hasNoResponders(error)) return 'missing';
  return 'again';
}

/** Out of storage; nats-server also reports it for a stream that another process is creating. */
export function lacksResources(error: unknown): boolean {
  return error instanceof JetStreamApiError && NO_RESOURCES.includes(error.code);
}

export function isStreamMissing(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound;
}

/** Replicas are refused, since the broker is no cluster. */
export function lacksCluster(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === NO_CLUSTER;
}

/** Credentials refused. A process that stands still for longer than the broker waits for its credentials is not refused, though the library says so. */
export function isRefusal(error: unknown): error is AuthorizationError {
  return error instanceof AuthorizationError && !/timeout/i.test(error.message);
}

/** Permission denied. */
export function isDenied(error: unknown): boolean {
  return [error, causeOf(error)].some((one) => one instanceof PermissionViolationError);
}

/** The stream does not exist, or the broker has no JetStream. */
export function hasNoResponders(error: unknown): boolean {
  return [error, causeOf(error)].some((one) => one instanceof RequestError && one.isNoResponders());
}

/** There is one, though it refuses. */
export function isAnswerOfLeader(error: unknown): boolean {
  return error instanceof InProcessError || (error instanceof JetStreamApiError && (error.status < 500 || verdictOn(error) === 'full'));
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}
