import { linkedAbort } from '#client/abort.ts';

/**
 * Does work while the page is shown: hiding the page aborts its signal, and showing it begins it again. A browser opens six HTTP/1.1 connections to a server,
 * for all of its pages: the streams of those that are not seen would leave none to the one that is.
 *
 * @param work returns at the abort, and not before
 * @param signal ends it
 */
export async function whileShown(work: (signal: AbortSignal) => Promise<void>, signal?: AbortSignal): Promise<void> {
  while (!signal?.aborted) {
    const { controller, release } = linkedAbort(signal);
    const change = () => controller.abort();
    document.addEventListener('visibilitychange', change);
    try {
      if (document.hidden) await new Promise((resolve) => controller.signal.addEventListener('abort', resolve));
      else await work(controller.signal);
    } finally {
      document.removeEventListener('visibilitychange', change);
      release();
    }
  }
}
