import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../tests/helpers/eventually.ts';
import { withLock } from './exclusive-lock.mjs';

let folder: string;
let lock: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'switchyard lock '));
  lock = join(folder, 'lock');
});
afterEach(() => rmSync(folder, { recursive: true }));

const module = fileURLToPath(new URL('exclusive-lock.mjs', import.meta.url));

/** A child process that acquires the lock, reports it, and holds it until its stdin ends. */
function startLocking() {
  const program = `
    import { once } from 'node:events';
    import { pathToFileURL } from 'node:url';
    const { withLock } = await import(pathToFileURL(process.argv[1]).href);
    await withLock(process.argv[2], async () => {
      console.log('held');
      process.stdin.resume();
      await once(process.stdin, 'end');
    });`;
  return spawn(process.execPath, ['--input-type=module', '-e', program, module, lock], { stdio: ['pipe', 'pipe', 'inherit'] });
}

it('waits for a running process that has the lock, and prints once for which', async () => {
  const other = startLocking();
  await once(other.stdout, 'data');
  const waitedFor: number[] = [];
  let held = false;

  const waiting = withLock(
    lock,
    async () => {
      held = true;
    },
    { onWait: (pid) => waitedFor.push(pid) },
  );
  await eventually(() => waitedFor.length > 0);
  expect(held).toBe(false);
  other.stdin.end();
  await waiting;

  expect(held).toBe(true);
  expect(waitedFor).toEqual([other.pid]);
  expect(readdirSync(folder)).toEqual([]);
});

it('stops waiting when it is aborted', async () => {
  const other = startLocking();
  await once(other.stdout, 'data');
  const controller = new AbortController();

  const waiting = withLock(lock, async () => 'held', { signal: controller.signal, onWait: () => controller.abort() });

  await expect(waiting).rejects.toThrow('abort');
  other.stdin.end();
  await once(other, 'exit');
  expect(readdirSync(folder)).toEqual([]);
});

it('acquires the lock of a process that was killed', async () => {
  const other = startLocking();
  await once(other.stdout, 'data');
  other.kill('SIGKILL');
  await once(other, 'exit');
  expect(existsSync(lock)).toBe(true);

  expect(await withLock(lock, async () => 'held')).toBe('held');
  expect(readdirSync(folder)).toEqual([]);
});

it('acquires the lock of a process whose id another program has by now', async () => {
  writeFileSync(lock, JSON.stringify({ pid: process.pid, identity: 'started at another time', nonce: 'n' }));

  expect(await withLock(lock, async () => 'held')).toBe('held');
});

it('acquires the lock of a process that died while it acquired it from a dead one', async () => {
  writeFileSync(lock, JSON.stringify({ pid: 1, identity: 'long gone', nonce: 'first' }));
  writeFileSync(`${lock}.after-first`, JSON.stringify({ pid: 1, identity: 'gone too', nonce: 'second' }));

  expect(await withLock(lock, async () => 'held')).toBe('held');
  expect(readdirSync(folder)).toEqual([]);
});

it('reads a damaged lock file as that of a dead process', async () => {
  writeFileSync(lock, '{"pid":');

  expect(await withLock(lock, async () => 'held')).toBe('held');
});

it('admits one at a time when many find the same dead process', async () => {
  writeFileSync(lock, JSON.stringify({ pid: 1, identity: 'long gone', nonce: 'dead' }));
  const counter = join(folder, 'counter');
  writeFileSync(counter, '0');
  const program = `
    import { readFileSync, writeFileSync } from 'node:fs';
    import { pathToFileURL } from 'node:url';
    const { withLock } = await import(pathToFileURL(process.argv[1]).href);
    const [, , lock, counter] = process.argv;
    for (let round = 0; round < 5; round += 1) {
      await withLock(lock, async () => {
        const before = Number(readFileSync(counter, 'utf8'));
        await new Promise(setImmediate);
        writeFileSync(counter, String(before + 1));
      });
    }`;
  const contenders = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', program, module, lock, counter], { stdio: 'inherit' }),
  );

  const codes = await Promise.all(contenders.map(async (contender) => (await once(contender, 'exit'))[0]));

  expect(codes).toEqual([0, 0, 0, 0]);
  expect(readFileSync(counter, 'utf8')).toBe('20');
  expect(readdirSync(folder)).toEqual(['counter']);
});

it('releases the lock when its work throws', async () => {
  await expect(withLock(lock, () => Promise.reject(new Error('no')))).rejects.toThrow('no');

  expect(readdirSync(folder)).toEqual([]);
});
