import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';

/** By Node's error code; any other gets 400. */
const REFUSALS: Readonly<Record<string, { status: number; code: string; error: string }>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, code: 'timeout', error: 'the request was not received in time' },
  HPE_HEADER_OVERFLOW: { status: 431, code: 'validation_failed', error: 'the headers are too large' },
};
const UNREADABLE = { status: 400, code: 'validation_failed', error: 'the request could not be read as HTTP' };

/** Replies to invalid HTTP on the bare socket, in the form of all other refusals. */
export function respondToBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  // After earlier bytes a second response might end up inside one in progress.
  if (socket.writable && socket.bytesWritten === 0) {
    const { status, ...body } = REFUSALS[error.code ?? ''] ?? UNREADABLE;
    const text = JSON.stringify({ error: body.error, code: body.code });
    const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(text)}`;
    socket.write(`${head}\r\nConnection: close\r\n\r\n${text}`);
  }
  socket.destroySoon();
}
