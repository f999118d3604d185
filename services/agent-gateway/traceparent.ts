import type { IncomingHttpHeaders } from 'node:http';

/** The caller's W3C trace context, to be carried along; null when there is none, or it is not one. */
export function traceparentOf({ traceparent }: IncomingHttpHeaders): string | null {
  return typeof traceparent === 'string' && /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(traceparent) ? traceparent : null;
}
