import { execFileSync } from 'node:child_process';
import fs, { constants, createReadStream, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { type LineWriter, lineWriter } from './line-writer.ts';

const LINES = 40;
const LINE_BYTES = 64 * 1_024;
const dropLine = z.object({ level: z.literal('warn'), service: z.literal('test'), dropped: z.number(), msg: z.string() });

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'switchyard-lines-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const plainLine = (index: number) => `${index} `.padEnd(LINE_BYTES - 1, 'x').concat('\n');
const INDEX = /^(?:\{"level":"info","index":)?(\d+)/;
/** Several are written at once. */
const heldLine = (index: number) => `{"level":"info","index":${index},"text":"${'x'.repeat(1_000)}"}\n`;

it.each([
  { what: 'lines', lines: LINES, lineOf: plainLine },
  // The last one is not held.
  { what: 'lines that are written at once', lines: 3_000, lineOf: (index: number) => (index === 2_999 ? plainLine(index) : heldLine(index)) },
])('drops $what without a reader, never blocks, and reports afterwards how many', async ({ lines, lineOf }) => {
  const pipe = join(folder, 'pipe');
  execFileSync('sh', ['-c', 'mkfifo "$0"', pipe]);
  const fd = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
  let counted = 0;
  const writer = lineWriter({ fd, service: 'test', onDrop: () => (counted += 1) });
  for (let index = 0; index < lines; index += 1) writer.write(lineOf(index));

  const received: string[] = [];
  for await (const line of createInterface({ input: createReadStream(pipe) })) {
    received.push(line);
    if (line.startsWith('{"level":"warn"')) break;
  }

  const kept = received.slice(0, -1);
  const { dropped } = dropLine.parse(JSON.parse(received.at(-1) ?? ''));
  expect(dropped).toBeGreaterThan(0);
  expect(counted).toBe(dropped);
  expect(kept.length + dropped).toBe(lines);
  expect(kept.map((line) => Number(INDEX.exec(line)?.[1]))).toEqual(kept.map((_, index) => index));
  await writer.end();
});

/** What this module does when the process exits. */
const listenersAtExit = () => process.listeners('exit').filter(({ name }) => name === 'flushAllAtExit');
const exit = () => {
  for (const listener of listenersAtExit()) listener.call(process, 0);
};

describe('an exit of the process', () => {
  it('does not wait for ever for a reader that takes nothing, also with lines that are logged during it', () => {
    const pipe = join(folder, 'pipe');
    execFileSync('sh', ['-c', 'mkfifo "$0"', pipe]);
    const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    const fd = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
    // As much as a pipe holds: no line fits behind it.
    const filled = fs.writeSync(fd, plainLine(0));
    const writer = lineWriter({ fd, service: 'test' });
    for (let index = 1; index < 4; index += 1) writer.write(plainLine(index));
    writer.write('{"level":"info"}\n');
    exit();
    writer.write('{"level":"error"}\n');
    const bytes = Buffer.alloc(2 * LINE_BYTES);
    const read = fs.readSync(reader, bytes);

    expect(bytes.toString('utf8', 0, read)).toBe(plainLine(0).slice(0, filled));
    fs.closeSync(reader);
  });

  it('has one listener, however many logs there are', async () => {
    const writers = Array.from({ length: 20 }, () => lineWriter({ fd: openSync(join(folder, 'lines'), 'w'), service: 'test' }));

    expect(listenersAtExit()).toHaveLength(1);
    await Promise.all(writers.map((writer) => writer.end()));
  });
});

describe('a line', () => {
  const line = (level: string, text: string) => `{"level":"${level}","msg":"${text}"}\n`;
  let path: string;
  let writer: LineWriter;
  let writes: string[];
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    writes = [];
    const write = fs.write;
    vi.spyOn(fs, 'write').mockImplementation(((...parameters: Parameters<typeof write>) => {
      writes.push(String(parameters[1]));
      return Reflect.apply(write, fs, parameters);
    }) as typeof write);
    path = join(folder, 'lines');
    writer = lineWriter({ fd: openSync(path, 'w'), service: 'test' });
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  it('at info waits a moment for others, and is written with them', async () => {
    writer.write(line('info', 'one'));
    await new Promise(setImmediate);
    writer.write(line('debug', 'two'));
    vi.advanceTimersByTime(19);
    expect(writes).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(writes).toEqual([line('info', 'one') + line('debug', 'two')]);
    await writer.end();
    expect(readFileSync(path, 'utf8')).toBe(writes.join(''));
  });

  it('waits no more once there are 16 KiB', async () => {
    const long = line('info', 'x'.repeat(1_000));
    for (let index = 0; index < 16; index += 1) writer.write(long);
    expect(writes).toEqual([long.repeat(16)]);
    await writer.end();
  });

  it.each(['warn', 'error', 'fatal'])('at %s is written without a pause, behind those before it', async (level) => {
    writer.write(line('info', 'one'));
    writer.write(line(level, 'two'));
    expect(writes).toEqual([line('info', 'one') + line(level, 'two')]);
    await writer.end();
  });

  it('that waits is written before the process has exited, and when the log ends', async () => {
    writer.write(line('info', 'one'));
    await writer.end();
    expect(readFileSync(path, 'utf8')).toBe(line('info', 'one'));
    lineWriter({ fd: openSync(path, 'w'), service: 'test' }).write(line('info', 'two'));
    // Nothing that is asynchronous is sure to be done behind it.
    exit();
    expect(readFileSync(path, 'utf8')).toBe(line('info', 'two'));
  });
});
