import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { type ProgramOptions, type RunningProgram, runProgram } from '../helpers/run-program.ts';

/** Passes one point, another, and the first again. Its output is written synchronously, so none of it is lost when the process is killed. */
const PASSING = `
import { writeSync } from 'node:fs';
import { failPoint } from './dist/shared/fail-points.js';
const pass = (name, word) => { failPoint(name); writeSync(1, word + '\\n'); };
pass('commit.sending', 'first');
pass('commit.stored', 'second');
pass('commit.sending', 'third');`;
const TIMEOUT = { timeoutMs: 60_000 };

describe('a process with a fail point', () => {
  it('dies by SIGKILL at the point, prints that it does, and runs nothing behind it', async () => {
    const program = passing('commit.stored:kill');

    expect(await program.exited).toEqual({ code: null, signal: 'SIGKILL' });
    expect(program.output()).toBe('first\nfail point commit.stored: SIGKILL\n');
  });

  it('dies at the pass that was asked for', async () => {
    const program = passing('commit.sending:kill:2');

    expect(await program.exited).toEqual({ code: null, signal: 'SIGKILL' });
    expect(program.output()).toBe('first\nsecond\nfail point commit.sending: SIGKILL\n');
  });

  it('stops at the point until SIGCONT, and then goes on', async () => {
    const program = passing('commit.stored:stop');
    // Its output may arrive here a while after it stopped.
    await eventually(() => isStopped(program) && program.output() === 'first\nfail point commit.stored: SIGSTOP\n', TIMEOUT);

    program.signal('SIGCONT');
    expect(await program.exited).toEqual({ code: 0, signal: null });
    expect(program.output()).toBe('first\nfail point commit.stored: SIGSTOP\nsecond\nthird\n');
  });

  it('is not affected by a point that it passes less often', async () => {
    const program = passing('commit.sending:kill:3');

    expect(await program.exited).toEqual({ code: 0, signal: null });
    expect(program.output()).toBe('first\nsecond\nthird\n');
  });

  it('ignores fail points in production', async () => {
    expect(await passing('commit.stored:kill', { NODE_ENV: 'production' }).exited).toEqual({ code: 0, signal: null });
  });
});

describe.each(['actor-host', 'standalone'])('%s', (service) => {
  const start = (env: NonNullable<ProgramOptions['env']>) => runProgram([process.execPath, `dist/services/${service}/main.js`], { env });

  it.each([
    ['a fail point in production', { NODE_ENV: 'production', FAIL_POINT: 'commit.stored:kill' }, 'FAIL_POINT is for tests and is refused in production'],
    ['one that there is not', { FAIL_POINT: 'commit.never:kill' }, 'FAIL_POINT must be <name>:<kill|stop>[:<hit>] with the name of a fail point'],
  ])('does not start with %s, and prints one line about it', async (_, env, words) => {
    const program = start(env);

    expect(await program.exited).toEqual({ code: 1, signal: null });
    expect(program.output()).toMatch(/^[^\n]* can't start: [^\n]*\n$/);
    expect(program.output()).toContain(words);
  });
});

function passing(failPoint: string, env: NonNullable<ProgramOptions['env']> = {}): RunningProgram {
  return runProgram([process.execPath, '--input-type=module', '-e', PASSING], { env: { FAIL_POINT: failPoint, ...env } });
}

/** The state of a process stands behind its name in /proc. */
function isStopped({ pid }: RunningProgram): boolean {
  return /\) T /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
}
