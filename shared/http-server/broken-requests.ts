import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

interface BrokenRequestReply {
  status: number;
  body: object;
}

/** The code of a CONNECT, beside those of Node's errors. */
export const TUNNEL_REQUEST = 'TUNNEL_REQUEST';

/** Replies to what is no request that an app can handle: mostly bytes that are not valid HTTP. */
export interface BrokenRequests {
  /** By the error's code. */
  byCode: Readonly<Record<string, BrokenRequestReply>>;
  otherwise: BrokenRequestReply;
  contentType: string;
}

export type RespondToBrokenRequest = (error: Error & { code?: string }, socket: Socket | Duplex) => void;

/** Writes to the bare socket, since there is no request. */
export function brokenRequestResponder({ byCode, otherwise, contentType }: BrokenRequests): RespondToBrokenRequest {
  return (error, socket) => {
    if (error.code === 'ECONNRESET' || socket.destroyed) return;
    // After earlier bytes a second response might end up inside one in progress.
    if (socket.writable && !('bytesWritten' in socket && socket.bytesWritten > 0)) {
      const { status, body } = byCode[error.code ?? ''] ?? otherwise;
      const text = JSON.stringify(body);
      const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${contentType}\r\nContent-Length: ${Buffer.byteLength(text)}`;
      socket.write(`${head}\r\nConnection: close\r\n\r\n${text}`);
    }
    socket.end(() => socket.destroy());
  };
}
