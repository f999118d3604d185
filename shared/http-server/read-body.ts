import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { errorCodes } from 'fastify';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { FailBody } from './arriving-bodies.ts';

export interface BodyToRead {
  headers: IncomingHttpHeaders;
  payload: Readable;
  limitBytes: number;
  /** Counts arriving bytes. @throws when there is no capacity for them */
  grew(bytes: number): void;
  /** Called once, before anything is read. @param fail without effect once all is read @returns called when reading has ended, however it did */
  reading?(fail: FailBody): (() => void) | undefined;
}

/** Called once. */
type BodyRead = (error: Error | null, body: Buffer) => void;

const EMPTY = Buffer.alloc(0);

/**
 * Reads a request body. Fails when `grew` throws, the body exceeds its limit, or `fail` is called; the rest is then read and dropped, so that the client
 * receives the error response.
 */
export function readBody({ headers, payload, limitBytes, grew, reading }: BodyToRead, done: BodyRead): void {
  const given = headers['content-length'];
  const announced = given === undefined ? null : Number(given);
  // Set to null at the end: the stream keeps this closure reachable until the response is complete.
  let pieces: Buffer[] | null = [];
  let sizeBytes = 0;

  let endReading: (() => void) | undefined;

  const end = (error: Error | null, whole: Buffer = EMPTY) => {
    pieces = null;
    endReading?.();
    done(error, whole);
  };
  if (announced !== null && announced > limitBytes) {
    end(tooLarge(limitBytes));
    return;
  }
  endReading = reading?.((error) => {
    if (pieces !== null) end(error);
  });
  payload.on('data', (piece: Buffer) => {
    if (pieces === null) return;
    sizeBytes += piece.byteLength;
    const refused = sizeBytes > limitBytes ? tooLarge(limitBytes) : counted(grew, piece.byteLength);
    // Counting it may have ended the reading of the body that is oldest: this one.
    if (pieces === null) return;
    if (refused === null) pieces.push(piece);
    else end(refused);
  });
  payload.on('end', () => {
    if (pieces === null) return;
    const [only = EMPTY] = pieces;
    if (announced !== null && announced !== sizeBytes) end(new errorCodes.FST_ERR_CTP_INVALID_CONTENT_LENGTH());
    else end(null, pieces.length <= 1 ? only : Buffer.concat(pieces, sizeBytes));
  });
  payload.on('error', (error) => {
    if (pieces !== null) end(brokenOff(error));
  });
}

const MIB = 1_024 * 1_024;

function tooLarge(limitBytes: number): SwitchyardError {
  const limit = limitBytes % MIB === 0 ? `${limitBytes / MIB} MiB` : `${limitBytes} bytes`;
  return new SwitchyardError('request.too_large', `the body is larger than ${limit}`);
}

/** @returns null when there is capacity */
function counted(grew: BodyToRead['grew'], bytes: number): Error | null {
  try {
    grew(bytes);
    return null;
  } catch (error) {
    return error instanceof Error ? error : new Error('the body could not be counted', { cause: error });
  }
}

/** Fastify's status for a client that disconnected. */
function brokenOff(error: Error): Error {
  return Object.assign(error, { statusCode: 400 });
}
