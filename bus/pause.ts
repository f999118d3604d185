/** Resolves after the time or on abort; never rejects. The timer is unref'ed. */
export function pauseFor(ms: number, until: AbortSignal | null = null): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      until?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms).unref();
    if (until?.aborted) end();
    else until?.addEventListener('abort', end);
  });
}
