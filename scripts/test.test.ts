import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { runProgram } from '../tests/helpers/run-program.ts';

it('npm run test:fast runs the files that it is given, without servers, and ends with the count', async () => {
  const env = { SWITCHYARD_TEST_TIER: '', NO_COLOR: '1' };
  const run = runProgram([process.execPath, 'scripts/test.mjs', '--tier=fast', 'scripts/node-version.test.ts'], { env });

  expect(await run.exited, run.output()).toEqual({ code: 0, signal: null });
  expect(run.output()).toMatch(/own-process.*scripts\/node-version\.test\.ts/);
  expect(run.output()).toMatch(/^\d+ passed, 0 failed$/m);
});

it('a run of the tests that a pattern names ends with 0, though it skips the others', async () => {
  const run = runProgram([process.execPath, 'node_modules/vitest/vitest.mjs', 'run', 'scripts/node-version.test.ts', '-t', 'lock file']);

  expect(await run.exited, run.output()).toEqual({ code: 0, signal: null });
});

it.each([
  ['--changed ends with 0 where no edit affects a test', ['--changed'], { code: 0, line: '0 passed, 0 failed' }],
  ['the name of a file that is not there ends with 1', ['missing'], { code: 1, line: '0 passed, 1 failed' }],
])('a run without tests: %s', async (_, args, { code, line }) => {
  const folder = folderWithoutEdits();
  const run = runProgram([process.execPath, 'node_modules/vitest/vitest.mjs', 'run', '--root', folder, ...args], { env: { NO_COLOR: '1' } });

  expect(await run.exited, run.output()).toEqual({ code, signal: null });
  expect(run.output().trimEnd().split('\n').at(-1)).toBe(line);
});

/** A clone with one test, in which everything is committed. */
function folderWithoutEdits(): string {
  const folder = mkdtempSync(join(tmpdir(), 'test-run-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const reporter = fileURLToPath(new URL('closing-line.mjs', import.meta.url));
  writeFileSync(join(folder, 'vitest.config.mjs'), `export default { test: { reporters: ['default', ${JSON.stringify(reporter)}] } };\n`);
  writeFileSync(join(folder, 'one.test.mjs'), "throw new Error('it is not run');\n");
  for (const args of [
    ['init', '-q'],
    ['add', '.'],
    ['-c', 'user.name=test', '-c', 'user.email=test@example.org', 'commit', '-qm', 'all'],
  ]) {
    const { status, stderr } = spawnSync('git', args, { cwd: folder, encoding: 'utf8' });
    expect(status, stderr).toBe(0);
  }
  return folder;
}
