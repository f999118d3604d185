import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { settingGroups } from '../../scripts/settings.mjs';
import { copyClone } from '../helpers/copy-clone.ts';
import { eventually } from '../helpers/eventually.ts';
import { firstTenMinutes } from '../helpers/first-ten-minutes.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { openStream } from '../helpers/open-stream.ts';
import { runProgram } from '../helpers/run-program.ts';
import { type Standalone, startStandalone } from '../helpers/start-standalone.ts';
import { casesOfToday } from '../helpers/tier.ts';

describe('npm start in a clone that was never started', () => {
  let clone: string;
  beforeAll(async () => {
    clone = await copyClone({ withPackages: false });
  });

  it('prints its settings for --help and installs nothing', async () => {
    const before = readdirSync(clone);
    const help = runProgram(['npm', 'start', '--', '--help'], { cwd: clone });

    expect(await help.exited).toEqual({ code: 0, signal: null });
    for (const { settings } of settingGroups) for (const { name } of settings) expect(help.output()).toContain(name);
    expect(readdirSync(clone)).toEqual(before);
  });

  it('refuses an unknown argument, and installs nothing', async () => {
    const start = runProgram([process.execPath, 'scripts/start.mjs', '--port', '80'], { cwd: clone });

    expect(await start.exited).toEqual({ code: 2, signal: null });
    expect(start.output()).toContain("'--port'");
    expect(existsSync(join(clone, 'node_modules'))).toBe(false);
  });

  // Behind the others, which find the clone as it was.
  it('reports that installing failed, and why, when the registry is unreachable', async () => {
    const unreachable = { npm_config_registry: 'http://127.0.0.1:9', npm_config_fetch_retries: '0', npm_config_cache: await freeFolder('cache') };
    const start = runProgram(['npm', 'start'], { cwd: clone, env: unreachable });

    expect((await start.exited).code).toBe(1);
    expect(start.output()).toContain('Installing packages (at the first start and after an update) …');
    expect(start.output()).toMatch(/Installing packages failed: npm ci in .*a path with spaces ended with code 1/);
    expect(start.output()).toContain('ECONNREFUSED');
    expect(existsSync(join(clone, 'node_modules', '.stamp'))).toBe(false);
  });
});

// The last two use what the one before them has built, or build it when they run alone: that takes most of their time.
describe('npm start in a clone that was never built', () => {
  let clone: string;
  let second: Standalone | undefined;
  const git = (...args: string[]) => spawnSync('git', ['-C', clone, '-c', 'user.name=Test', '-c', 'user.email=test@localhost', ...args], { encoding: 'utf8' });
  const left = () => readdirSync(clone).filter((name) => name.startsWith('.prepare'));
  // Not by a whole start: that one's bound is too short for a build, or for two, on a busy machine.
  const prepare = () => runProgram([process.execPath, 'scripts/prepare.mjs', '--build'], { cwd: clone, env: { NODE_ENV: 'production' } });
  const started = async () => {
    expect(await prepare().exited).toEqual({ code: 0, signal: null });
    second ??= await startStandalone({
      command: ['npm', 'start'],
      cwd: clone,
      dataDir: join(clone, 'data'),
      env: { NODE_ENV: 'production' },
      isFirstStart: true,
    });
    return second;
  };

  beforeAll(async () => {
    clone = await copyClone({ withPackages: true });
    for (const args of [
      ['init', '--quiet'],
      ['add', '--all'],
      ['commit', '--quiet', '--no-verify', '--message', 'all'],
    ])
      expect(git(...args).status).toBe(0);
  });

  it.each(
    casesOfToday([
      ['SIGTERM', 143],
      ['SIGINT', 130],
    ] as const),
  )('ends what it was doing and itself at %s, so that the next start begins that again', async (signal, code) => {
    const start = runProgram(['npm', 'start'], { cwd: clone });
    await eventually(() => start.output().includes('Building …'), { timeoutMs: 60_000 });
    start.signal(signal);

    expect(await start.exited).toEqual({ code, signal: null });
    expect(existsSync(join(clone, 'dist', '.stamp'))).toBe(false);
    expect(left()).toEqual([]);
  });

  it('starts twice at once: one prepares, the other waits for it', async () => {
    const [one, other] = [prepare(), prepare()];
    expect(await Promise.all([one.exited, other.exited])).toEqual([
      { code: 0, signal: null },
      { code: 0, signal: null },
    ]);
    expect(`${one.output()}${other.output()}`.match(/Building …/g)).toHaveLength(1);
    expect(left()).toEqual([]);
  }, 240_000);

  it('leads a stranger from the address that it prints to a key whose limit refuses, as README begins', async () => {
    expect(git('status', '--porcelain').stdout).toBe('');

    await firstTenMinutes(await started(), clone);
  }, 240_000);

  it('runs from a path with spaces, with NODE_ENV=production, and leaves nothing behind that git would see', async () => {
    const running = await started();
    const { text } = await openStream(running, 'Hello!');
    expect(await text).toContain('[DONE]');
    expect(await running.stop()).toEqual({ code: 0, signal: null });

    expect(running.output()).not.toMatch(/Building|Installing/);
    expect(git('status', '--porcelain').stdout).toBe('');
  }, 240_000);
});
