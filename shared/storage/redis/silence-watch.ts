import type { Redis } from 'ioredis';

const TICK_MS = 250;

/**
 * Closes a connection on which nothing arrives for `silenceMs` while replies are outstanding. The time is counted in ticks of 250 ms: one that is late counts
 * once, so this process's own lateness is not the server's silence.
 */
export function watchSilence(redis: Pick<Redis, 'stream' | 'commandQueue' | 'once'>, silenceMs: number): void {
  let watched: Redis['stream'] | null = null;
  let readBytes = 0;
  let silentMs = 0;
  const timer = setInterval(() => {
    // Not set before the first connection.
    const stream: Redis['stream'] | undefined = redis.stream;
    if (stream === undefined || stream.destroyed) return;
    if (stream !== watched || stream.bytesRead !== readBytes || redis.commandQueue.length === 0) {
      watched = stream;
      readBytes = stream.bytesRead;
      silentMs = 0;
      return;
    }
    silentMs += TICK_MS;
    if (silentMs >= silenceMs) stream.destroy(new Error(`nothing arrived for ${silenceMs} ms while replies are outstanding`));
  }, TICK_MS).unref();
  redis.once('end', () => clearInterval(timer));
}
