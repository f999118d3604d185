/**
 * A vitest reporter that ends the run with one line, `N passed, N failed`, for any CI to parse. A skipped test, an empty run or an aborted one
 * counts as failure: missing tests must not pass unnoticed. With `-t` the tests that it leaves out are wanted to be skipped, and with `--changed` a run
 * is empty where no edit affects a test.
 */
export default class ClosingLine {
  /** Printed when the run aborts. */
  #line = '0 passed, 1 failed';

  #hasPattern = false;

  #mayBeEmpty = false;

  /** @param {import('vitest/node').Vitest} vitest */
  onInit(vitest) {
    this.#hasPattern = vitest.config.testNamePattern !== undefined;
    this.#mayBeEmpty = Boolean(vitest.config.changed);
    process.on('exit', () => console.log(this.#line));
  }

  /** @param {readonly import('vitest/node').TestModule[]} modules @param {readonly unknown[]} unhandledErrors */
  onTestRunEnd(modules, unhandledErrors) {
    if (modules.length === 0 && unhandledErrors.length === 0 && this.#mayBeEmpty) {
      this.#line = '0 passed, 0 failed';
      return;
    }
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
    if ((skipped > 0 && !this.#hasPattern) || passed === 0) process.exitCode = 1;
    if (passed + failed + skipped === 0) return; // nothing ran: the initial line stays
    this.#line = `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
  }
}
