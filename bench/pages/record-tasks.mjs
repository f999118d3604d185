/** @typedef {import('./open-chromium.mjs').Page} Page */

/** Shorter tasks are dropped as they come. */
const LEAST_US = 4_000;
const CONFIG = { recordMode: 'recordContinuously', traceBufferSizeInKb: 400_000, includedCategories: ['toplevel'], excludedCategories: ['*'] };

/**
 * Records the tasks of a page's main thread by Chromium's own trace: unlike the observer of long tasks it knows the CPU that each has used.
 *
 * @param {Page} page @returns {Promise<{ end: () => Promise<number[]> }>} `end`: milliseconds of CPU of each task, most first
 */
export async function recordTasks(page) {
  const session = await page.context().newCDPSession(page);
  /** @type {{ ph: string, name: string, pid: number, tid: number, dur?: number, tdur?: number, args: { name?: string } }[]} */
  const events = [];
  session.on('Tracing.dataCollected', ({ value }) => {
    for (const event of /** @type {typeof events} */ (/** @type {unknown} */ (value))) {
      if (event.name === 'thread_name' || (event.ph === 'X' && event.name.endsWith('RunTask') && (event.dur ?? 0) >= LEAST_US)) events.push(event);
    }
  });
  await session.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: /** @type {any} */ (CONFIG) });
  return {
    end: async () => {
      const complete = new Promise((resolve) => session.once('Tracing.tracingComplete', resolve));
      await session.send('Tracing.end');
      await complete;
      const threadOf = (/** @type {{ pid: number, tid: number }} */ { pid, tid }) => `${pid} ${tid}`;
      const mains = new Set(events.filter(({ args }) => args.name === 'CrRendererMain').map(threadOf));
      const tasks = events.filter((event) => event.ph === 'X' && mains.has(threadOf(event)));
      if (tasks.length === 0) throw new Error('the trace has no task of the page');
      return tasks.map(({ tdur = 0 }) => tdur / 1_000).sort((a, b) => b - a);
    },
  };
}
