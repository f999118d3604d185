/** Longest work without a pause: a page that works longer answers no key. */
const MAX_WORK_MS = 8;

/** A function to await between pieces of work: it lets the browser paint and handle input when the last pause is too long ago. */
export function breather(): () => Promise<void> {
  const { port1, port2 } = new MessageChannel();
  let sinceMs = performance.now();
  return async () => {
    if (performance.now() - sinceMs < MAX_WORK_MS) return;
    // Timers of hidden tabs are slowed down to one a second; messages are not.
    await new Promise<void>((resolve) => {
      port1.onmessage = () => resolve();
      port2.postMessage(null);
    });
    sinceMs = performance.now();
  };
}
