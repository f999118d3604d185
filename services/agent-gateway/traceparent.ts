import type { IncomingHttpHeaders } from 'node:http';

/** Version, trace, parent, flags. Zeros name no trace and no parent, and the version ff is none (W3C Trace Context, 3.2). */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The caller's W3C trace context, to be carried along; null when there is none, or it is not one. */
export function traceparentOf({ traceparent }: IncomingHttpHeaders): string | null {
  return typeof traceparent === 'string' && TRACEPARENT.test(traceparent) ? traceparent : null;
}
