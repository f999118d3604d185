/** The largest message of a broker that `deploy/` sets up: a long prompt with a few images. It occupies a connection for as long as it is sent. */
export const MAX_PAYLOAD_BYTES = 4 * 1024 * 1024;
/** Beside a body: its mark, and the headers with which a consumer without a free slot stores it. */
const MAX_HEAD_BYTES = 4 * 1024;

/** @param maxPayloadBytes of the broker's messages; the default of nats-server is 1 MiB */
export function maxDispatchBytes(maxPayloadBytes: number = MAX_PAYLOAD_BYTES): number {
  return Math.min(maxPayloadBytes, MAX_PAYLOAD_BYTES) - MAX_HEAD_BYTES;
}
