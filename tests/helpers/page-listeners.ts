import type { Page } from 'playwright-core';

export interface PageListeners {
  /** Of the browser's events, on whatever objects of the page. */
  ofEvents: number;
  /** Functions in the page's own sets, which is where its objects keep those that they call. */
  inSets: number;
}

/** Counts functions in the sets that it gets. Text, since it runs in the page. */
const COUNT_FUNCTIONS = `function () {
  return this.reduce((sum, set) => sum + [...set].filter((member) => typeof member === 'function').length, 0);
}`;

/** What a page would call when something happens, without what garbage has. Chromium's debugger counts. */
export async function listenersOf(page: Page): Promise<PageListeners> {
  const debug = await page.context().newCDPSession(page);
  try {
    await debug.send('HeapProfiler.collectGarbage');
    await debug.send('Performance.enable');
    const { metrics } = await debug.send('Performance.getMetrics');
    const ofEvents = metrics.find(({ name }) => name === 'JSEventListeners')?.value;
    const { result: prototype } = await debug.send('Runtime.evaluate', { expression: 'Set.prototype' });
    const { objects } = await debug.send('Runtime.queryObjects', { prototypeObjectId: prototype.objectId ?? '' });
    const { result } = await debug.send('Runtime.callFunctionOn', {
      ...(objects.objectId !== undefined && { objectId: objects.objectId }),
      functionDeclaration: COUNT_FUNCTIONS,
      returnByValue: true,
    });
    if (ofEvents === undefined || typeof result.value !== 'number') throw new Error('the browser does not say what a page listens to');
    return { ofEvents, inSets: result.value };
  } finally {
    await debug.detach();
  }
}
