/**
 * A vitest reporter that closes the run with one plain line, `N passed, N failed`, which any CI can read.
 * A skipped test, or a run of no test at all, is an error: silence must never pass for success.
 */
export default class ClosingLine {
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
    process.on('exit', () => console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`));
  }
}
