/** Links a signal to a new controller; `AbortSignal.any` is missing in browsers of 2023. @returns `release` removes the link */
export function linkedAbort(signal: AbortSignal | undefined): { controller: AbortController; release: () => void } {
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal?.reason);
  if (signal?.aborted) onAbort();
  signal?.addEventListener('abort', onAbort);
  return { controller, release: () => signal?.removeEventListener('abort', onAbort) };
}

/** Some 25 days: longer timers of browsers and Node fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Resolves after the time, on abort, or when the browser is online again. Never rejects. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const browser: EventTarget | null = 'addEventListener' in globalThis ? (globalThis as unknown as EventTarget) : null;
    const finish = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', finish);
      browser?.removeEventListener('online', finish);
      resolve();
    };
    const timer = setTimeout(finish, Math.min(ms, LONGEST_TIMER_MS));
    signal?.addEventListener('abort', finish);
    browser?.addEventListener('online', finish);
    if (signal?.aborted) finish();
  });
}
