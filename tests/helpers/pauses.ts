const LOOK_EVERY_MS = 100;
/** Half of what costs a call its lease. */
const PAUSE_MS = 2_400;

/** Notices when this process did not run for so long that calls in it lost their lease: on a busy machine, not by a fault of what is tested. */
export function watchPauses(): { readonly pauses: number; stop(): void } {
  let lastMs = performance.now();
  let pauses = 0;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    if (nowMs - lastMs > PAUSE_MS) pauses += 1;
    lastMs = nowMs;
  }, LOOK_EVERY_MS);
  return {
    get pauses() {
      return pauses;
    },
    stop: () => clearInterval(timer),
  };
}
