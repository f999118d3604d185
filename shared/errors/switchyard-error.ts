/**
 * The only map from an error code to its public forms; a test compares docs/errors.md. `status`: HTTP status at a gateway. `retryable`:
 * whether the same request may succeed later. `routerType`: `error.type` of router bodies (the `error_type` vocabulary of its clients).
 * `agentCode`: `code` of agent-server bodies.
 */
export const errorCatalogue = {
  internal: { status: 500, retryable: false, routerType: 'server', agentCode: 'internal' },
  'config.invalid': { status: 500, retryable: false, routerType: 'server', agentCode: 'internal' },
  'bus.invalid_subject': { status: 500, retryable: false, routerType: 'server', agentCode: 'internal' },
  'bus.closed': { status: 503, retryable: true, routerType: 'server', agentCode: 'not_ready' },
  'bus.full': { status: 503, retryable: true, routerType: 'server', agentCode: 'not_ready' },
  'bus.lease_lost': { status: 500, retryable: true, routerType: 'server', agentCode: 'internal' },
  'bus.body_too_large': { status: 413, retryable: false, routerType: 'payload_too_large', agentCode: 'payload_too_large' },
  'bus.stream_refused': { status: 500, retryable: false, routerType: 'server', agentCode: 'internal' },
  'storage.wrong_handle': { status: 500, retryable: false, routerType: 'server', agentCode: 'internal' },
  'storage.closed': { status: 503, retryable: true, routerType: 'server', agentCode: 'not_ready' },
  'storage.schema_refused': { status: 500, retryable: false, routerType: 'server', agentCode: 'internal' },
  'storage.folder_held': { status: 500, retryable: false, routerType: 'server', agentCode: 'internal' },
  'service.not_ready': { status: 503, retryable: true, routerType: 'server', agentCode: 'not_ready' },
  'service.overloaded': { status: 503, retryable: true, routerType: 'server', agentCode: 'not_ready' },
  'service.no_answer': { status: 503, retryable: true, routerType: 'server', agentCode: 'not_ready' },
  'service.unreachable': { status: 503, retryable: true, routerType: 'server', agentCode: 'not_ready' },
  'service.other_log': { status: 500, retryable: false, routerType: 'server', agentCode: 'internal' },
  'service.port_taken': { status: 500, retryable: false, routerType: 'server', agentCode: 'internal' },
  'request.invalid': { status: 400, retryable: false, routerType: 'invalid_request', agentCode: 'validation_failed' },
  'request.unauthorized': { status: 401, retryable: false, routerType: 'authentication', agentCode: 'unauthorized' },
  'request.forbidden': { status: 403, retryable: false, routerType: 'permission_denied', agentCode: 'unauthorized' },
  'request.not_found': { status: 404, retryable: false, routerType: 'not_found', agentCode: 'not_found' },
  'request.conflict': { status: 409, retryable: false, routerType: 'invalid_request', agentCode: 'conflict' },
  'request.timeout': { status: 408, retryable: true, routerType: 'timeout', agentCode: 'timeout' },
  'request.method_not_allowed': { status: 405, retryable: false, routerType: 'invalid_request', agentCode: 'not_found' },
  'request.unsupported_media': { status: 415, retryable: false, routerType: 'invalid_request', agentCode: 'validation_failed' },
  'request.too_large': { status: 413, retryable: false, routerType: 'payload_too_large', agentCode: 'payload_too_large' },
  'request.rate_limited': { status: 429, retryable: true, routerType: 'rate_limit_exceeded', agentCode: 'rate_limited' },
  'outbound.refused': { status: 400, retryable: false, routerType: 'invalid_request', agentCode: 'validation_failed' },
  'outbound.failed': { status: 502, retryable: true, routerType: 'server', agentCode: 'internal' },
  'router.model_unknown': { status: 400, retryable: false, routerType: 'invalid_request', agentCode: 'internal' },
  'router.payment_required': { status: 402, retryable: false, routerType: 'payment_required', agentCode: 'internal' },
  'router.no_provider': { status: 503, retryable: false, routerType: 'not_found', agentCode: 'internal' },
  'router.provider_refused': { status: 400, retryable: false, routerType: 'invalid_request', agentCode: 'internal' },
  'router.context_length': { status: 400, retryable: false, routerType: 'context_length_exceeded', agentCode: 'internal' },
  'router.content_policy': { status: 403, retryable: false, routerType: 'content_policy_violation', agentCode: 'internal' },
  'router.provider_rate_limited': { status: 429, retryable: true, routerType: 'rate_limit_exceeded', agentCode: 'internal' },
  'router.provider_overloaded': { status: 503, retryable: true, routerType: 'provider_overloaded', agentCode: 'internal' },
  'router.provider_unavailable': { status: 502, retryable: true, routerType: 'provider_unavailable', agentCode: 'internal' },
  'router.provider_misconfigured': { status: 502, retryable: true, routerType: 'provider_unavailable', agentCode: 'internal' },
  'router.plugin_unavailable': { status: 503, retryable: true, routerType: 'provider_unavailable', agentCode: 'internal' },
  'router.key_refused': { status: 401, retryable: false, routerType: 'authentication', agentCode: 'internal' },
  'router.timeout': { status: 408, retryable: true, routerType: 'timeout', agentCode: 'internal' },
  'router.cancelled': { status: 408, retryable: false, routerType: 'timeout', agentCode: 'internal' },
  'session.not_found': { status: 404, retryable: false, routerType: 'not_found', agentCode: 'not_found' },
  'session.nothing_new': { status: 504, retryable: true, routerType: 'timeout', agentCode: 'timeout' },
  'session.exists': { status: 409, retryable: false, routerType: 'invalid_request', agentCode: 'conflict' },
  'customer.not_found': { status: 404, retryable: false, routerType: 'not_found', agentCode: 'not_found' },
  'customer.exists': { status: 409, retryable: false, routerType: 'invalid_request', agentCode: 'conflict' },
  'customer.has_sessions': { status: 409, retryable: false, routerType: 'invalid_request', agentCode: 'conflict' },
  'variable.not_found': { status: 404, retryable: false, routerType: 'not_found', agentCode: 'not_found' },
  'run.session_unusable': { status: 500, retryable: false, routerType: 'server', agentCode: 'session_error' },
  'run.not_found': { status: 404, retryable: false, routerType: 'not_found', agentCode: 'not_found' },
  'routine.not_found': { status: 404, retryable: false, routerType: 'not_found', agentCode: 'not_found' },
  'webhook.unsigned': { status: 401, retryable: false, routerType: 'authentication', agentCode: 'unauthorized' },
  'webhook.unmatched': { status: 502, retryable: true, routerType: 'server', agentCode: 'matching_failed' },
  'turn.timeout': { status: 500, retryable: true, routerType: 'timeout', agentCode: 'internal' },
  'turn.engine_failed': { status: 500, retryable: false, routerType: 'server', agentCode: 'internal' },
  'scenario.failed': { status: 500, retryable: false, routerType: 'server', agentCode: 'internal' },
} as const satisfies Record<string, { status: number; retryable: boolean; routerType: string; agentCode: string }>;

export type ErrorCode = keyof typeof errorCatalogue;

/** An error as stored in snapshots and sent on the bus: no class, stack or cause. */
export interface Failure {
  code: ErrorCode;
  message: string;
  details: Record<string, unknown>;
}

export class SwitchyardError extends Error {
  override readonly name = 'SwitchyardError';
  readonly code: ErrorCode;
  readonly details: Record<string, unknown>;

  /** @param message what this layer was doing. The inner message is in `cause`; the log prints the whole chain */
  constructor(code: ErrorCode, message: string, options: { cause?: unknown; details?: Record<string, unknown> } = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.details = options.details ?? {};
  }
}

/** A SwitchyardError keeps its code and message; any other error is `internal`, its text masked. */
export function failureOf(error: unknown): Failure {
  if (error instanceof SwitchyardError) return { code: error.code, message: error.message, details: error.details };
  return { code: 'internal', message: 'internal error', details: {} };
}
