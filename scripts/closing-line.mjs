/**
 * A vitest reporter that closes the run with one plain line, `N passed, N failed`, which any CI can read. A skipped test, a run of no
 * test at all, or one that broke off before it ended is an error: silence must never pass for success.
 */
export default class ClosingLine {
  /** What stands if the run breaks off, as when its servers don't start. */
  #line = '0 passed, 1 failed';

  onInit() {
    process.on('exit', () => console.log(this.#line));
  }

  /** @param {readonly import('vitest/node').TestModule[]} modules @param {readonly unknown[]} unhandledErrors */
  onTestRunEnd(modules, unhandledErrors) {
    let passed = 0;
    let failed = unhandledErrors.length;
    let skipped = 0;
    for (const module of modules) {
      failed += module.errors().length;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed') passed += 1;
        else if (state === 'failed') failed += 1;
        else skipped += 1;
      }
    }
    if (skipped > 0 || passed === 0) process.exitCode = 1;
    if (passed + failed + skipped === 0) return; // nothing was run: the line above stands
    this.#line = `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
  }
}
