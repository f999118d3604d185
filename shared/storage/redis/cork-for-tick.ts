import type { Writable } from 'node:stream';

const corked = new Map<Writable, (() => void)[]>();

/**
 * Holds writes back until the end of this tick, so that commands of several calls leave in one system call. Call before a write.
 *
 * @param atEnd runs at the end of the tick; what it writes leaves with the rest
 */
export function corkForTick(stream: Writable, atEnd?: () => void): void {
  let tasks = corked.get(stream);
  if (tasks === undefined) {
    tasks = [];
    corked.set(stream, tasks);
    stream.cork();
    setImmediate(uncork, stream);
  }
  if (atEnd !== undefined) tasks.push(atEnd);
}

function uncork(stream: Writable): void {
  const tasks = corked.get(stream) ?? [];
  corked.delete(stream);
  for (const task of tasks) task();
  stream.uncork();
}
