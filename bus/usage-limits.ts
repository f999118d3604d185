import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** The largest usage record, in UTF-8 bytes: a call with all its attempts and metadata takes a few thousand. */
export const MAX_USAGE_BYTES = 128 * 1024;
/** Back-off of a consumer whose handler rejects, doubled up to the longest. */
export const FIRST_BACKOFF_MS = 50;
export const LONGEST_BACKOFF_MS = 5_000;

/** @throws `bus.body_too_large` */
export function assertUsageSize(body: string): void {
  // At most three bytes per character: records need no counting.
  if (body.length * 3 <= MAX_USAGE_BYTES) return;
  const sizeBytes = Buffer.byteLength(body);
  if (sizeBytes <= MAX_USAGE_BYTES) return;
  const message = `a usage record has ${sizeBytes} bytes, ${MAX_USAGE_BYTES} is the most`;
  throw new SwitchyardError('bus.body_too_large', message, { details: { size_bytes: sizeBytes } });
}
