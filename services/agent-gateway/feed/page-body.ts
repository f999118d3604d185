import { Readable } from 'node:stream';
import { setImmediate as nextTick } from 'node:timers/promises';
import { noteText } from '#shared/lifecycle/heap.ts';

/** Characters; a shorter page leaves in one write with the head. */
const SHORT_PAGE = 16 * 1_024;
/** Characters; a longer page is encoded piece by piece, in as many ticks. */
const LONG_PAGE = 256 * 1_024;

/**
 * The JSON array of a page's events, as it is sent. A page of some length is encoded here: Node takes twice as long for a text, which it measures, and encodes
 * into a buffer of three times its length.
 * @param pieces of `PageText`
 */
export function pageBody(pieces: readonly string[]): string | Buffer | Readable {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  noteText(length);
  if (length <= SHORT_PAGE) return `[${pieces.join(',')}]`;
  return length <= LONG_PAGE ? bytesOf(pieces) : Readable.from(bytesByTick(pieces));
}

function bytesOf(pieces: readonly string[]): Buffer {
  const bytes = Buffer.allocUnsafe(pieces.reduce((sum, piece) => sum + 1 + Buffer.byteLength(piece), 1));
  let at = 0;
  for (const piece of pieces) {
    at += bytes.write(at === 0 ? '[' : ',', at);
    at += bytes.write(piece, at);
  }
  bytes.write(']', at);
  return bytes;
}

/** The other connections are served between pieces. */
async function* bytesByTick(pieces: readonly string[]): AsyncGenerator<Buffer> {
  for (const [index, piece] of pieces.entries()) {
    yield Buffer.from(`${index === 0 ? '[' : ','}${piece}`);
    await nextTick();
  }
  yield Buffer.from(']');
}
