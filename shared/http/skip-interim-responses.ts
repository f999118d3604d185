import type { Socket } from 'node:net';

/** More fail the request: a receiver could send them for ever. */
const MAX_RESPONSES = 16;
/** Of all their heads together, with their fields. */
const MAX_SKIPPED_BYTES = 16 * 1024;
const STATUS_LINE = 'HTTP/1.1 100';
/** All of 1xx but 101, which nothing here asks for. */
const INTERIM = /^HTTP\/1\.\d 1(?!01)\d\d/;
const HEAD_END = '\r\n\r\n';

/**
 * Drops the interim responses (100, 102, 103) in front of the first response of a connection: the client, which asks for none, ends the connection at a 100. What is no
 * interim response, or one too many, is left to the client.
 */
export function skipInterimResponses(socket: Socket): void {
  const read = socket.read.bind(socket);
  let held = Buffer.alloc(0);
  let skipped = 0;
  let skippedBytes = 0;
  socket.read = (size?: number) => {
    const chunk: Buffer | null = read(size);
    if (chunk === null) return null;
    held = Buffer.concat([held, chunk]);
    while (skipped < MAX_RESPONSES && isInterim(held)) {
      const end = held.indexOf(HEAD_END);
      const sizeBytes = end < 0 ? held.byteLength : end + HEAD_END.length;
      if (skippedBytes + sizeBytes > MAX_SKIPPED_BYTES) break;
      if (end < 0) return null;
      held = held.subarray(sizeBytes);
      skippedBytes += sizeBytes;
      skipped += 1;
    }
    if (held.byteLength === 0 || isCut(held)) return null;
    socket.read = read;
    return held;
  };
}

function isInterim(bytes: Buffer): boolean {
  return INTERIM.test(bytes.toString('latin1', 0, STATUS_LINE.length));
}

/** Whether more of the status line may show an interim response. */
function isCut(bytes: Buffer): boolean {
  return bytes.byteLength < STATUS_LINE.length && STATUS_LINE.startsWith(bytes.toString('latin1', 0, 'HTTP/1.'.length));
}
