import { type Readable, Transform } from 'node:stream';
import type { AdmittedCall } from './admission.ts';

/** A body that is counted as it arrives. It fails once there is no room for it; what still comes is read and dropped, so that the client gets its answer. */
export function countedBody(body: Readable, call: Pick<AdmittedCall, 'bodyGrew'>): Readable {
  const counted = new Transform({
    transform(chunk: Uint8Array, _, done) {
      try {
        call.bodyGrew(chunk.byteLength);
        done(null, chunk);
      } catch (error) {
        done(error instanceof Error ? error : new Error('the body could not be counted', { cause: error }));
      }
    },
  });
  // A pipe passes no error on, and a pipeline would close the connection with the body.
  body.on('error', (error) => counted.destroy(error));
  counted.on('error', () => body.resume());
  return body.pipe(counted);
}
