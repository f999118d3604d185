import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'switchyard-thread-'));
const path = join(folder, 'large.yaml');
afterAll(() => rmSync(folder, { recursive: true }));

/** In a program of its own, from the build: threads run no TypeScript. @param after the signal is aborted in this tick */
async function read(after: 'never' | 'at once' = 'never'): Promise<{ ticks: number; problems: string[]; keys: number; failed: boolean }> {
  const program = `
    const { readInThread } = await import('./dist/shared/config/read-in-thread.js');
    const stopping = new AbortController();
    let ticks = 0;
    const timer = setInterval(() => { ticks += 1; }, 5);
    const reading = readInThread(process.argv[1], stopping.signal);
    if (process.argv[2] === 'at once') stopping.abort();
    const { value, problems, failed = false } = await reading.catch(() => ({ value: null, problems: [], failed: true }));
    clearInterval(timer);
    console.log(JSON.stringify({ ticks, problems, keys: Object.keys(value ?? {}).length, failed }));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program, path, after], { cwd: root });
  return JSON.parse(stdout);
}

it('reads a large file while the event loop goes on', async () => {
  writeFileSync(path, Array.from({ length: 50_000 }, (_, index) => `key${index}: 1`).join('\n'));
  const { ticks, ...result } = await read();

  expect(result).toEqual({ problems: [], keys: 50_000, failed: false });
  // In the program's own thread there would be none between the file's text and its value.
  expect(ticks).toBeGreaterThan(20);
});

it('passes on what is wrong with a file', async () => {
  writeFileSync(path, 'a: 1\na: 2\n');
  expect(await read()).toMatchObject({ problems: ['line 2, column 1: this key is repeated'], failed: false });
});

it('ends with its signal', async () => {
  expect(await read('at once')).toMatchObject({ failed: true });
});
