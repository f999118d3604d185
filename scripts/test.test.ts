import { expect, it } from 'vitest';
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
