/** Calls the listener for each SIGHUP, which then no longer ends the process. @returns unregisters it */
export function onHangUp(listener: () => unknown): () => void {
  process.on('SIGHUP', listener);
  return () => void process.off('SIGHUP', listener);
}
