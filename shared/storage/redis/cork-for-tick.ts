import type { Writable } from 'node:stream';

const corked = new Set<Writable>();

/** Holds writes back until the end of this tick, so that commands of several calls leave in one system call. Call before a write. */
export function corkForTick(stream: Writable): void {
  if (corked.has(stream)) return;
  corked.add(stream);
  stream.cork();
  setImmediate(uncork, stream);
}

function uncork(stream: Writable): void {
  corked.delete(stream);
  stream.uncork();
}
