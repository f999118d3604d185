import type { Readable } from 'node:stream';
import { errorCodes, type FastifyRequest } from 'fastify';

/** Called once. */
type BodyRead = (error: Error | null, body: Buffer) => void;

const NOTHING = Buffer.alloc(0);

/**
 * Reads the body of a request that was let in, and counts it there as it arrives. It fails once there is no room for it, or it is larger
 * than it may be; what still comes is read and dropped, so that the client gets its answer.
 */
export function readBody(request: FastifyRequest, body: Readable, limitBytes: number, done: BodyRead): void {
  const given = request.headers['content-length'];
  const announced = given === undefined ? null : Number(given);
  // Let go of at the end: the stream, and what listens to it, lives as long as the answer takes.
  let pieces: Buffer[] | null = [];
  let sizeBytes = 0;

  const end = (error: Error | null, whole: Buffer = NOTHING) => {
    pieces = null;
    done(error, whole);
  };
  if (announced !== null && announced > limitBytes) {
    end(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE());
    return;
  }
  body.on('data', (piece: Buffer) => {
    if (pieces === null) return;
    sizeBytes += piece.byteLength;
    const refused = sizeBytes > limitBytes ? new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE() : counted(request, piece.byteLength);
    if (refused === null) pieces.push(piece);
    else end(refused);
  });
  body.on('end', () => {
    if (pieces === null) return;
    const [only = NOTHING] = pieces;
    if (announced !== null && announced !== sizeBytes) end(new errorCodes.FST_ERR_CTP_INVALID_CONTENT_LENGTH());
    else end(null, pieces.length <= 1 ? only : Buffer.concat(pieces, sizeBytes));
  });
  body.on('error', (error) => {
    if (pieces !== null) end(brokenOff(error));
  });
}

/** Null: there is room for so much more. */
function counted({ admitted }: FastifyRequest, bytes: number): Error | null {
  try {
    admitted?.bodyGrew(bytes);
    return null;
  } catch (error) {
    return error instanceof Error ? error : new Error('the body could not be counted', { cause: error });
  }
}

/** As the framework marks it: the client is gone. */
function brokenOff(error: Error): Error {
  return Object.assign(error, { statusCode: 400 });
}
