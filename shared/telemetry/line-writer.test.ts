import { execFileSync } from 'node:child_process';
import { constants, createReadStream, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { lineWriter } from './line-writer.ts';

const LINES = 40;
const LINE_BYTES = 64 * 1_024;
const dropLine = z.object({ level: z.literal('warn'), service: z.literal('test'), dropped: z.number(), msg: z.string() });

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'switchyard-lines-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it('drops lines without a reader, never blocks, and reports afterwards how many', async () => {
  const pipe = join(folder, 'pipe');
  execFileSync('sh', ['-c', 'mkfifo "$0"', pipe]);
  const fd = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
  let counted = 0;
  const writer = lineWriter({ fd, service: 'test', onDrop: () => (counted += 1) });
  for (let index = 0; index < LINES; index += 1) writer.write(`${index} `.padEnd(LINE_BYTES - 1, 'x').concat('\n'));

  const received: string[] = [];
  for await (const line of createInterface({ input: createReadStream(pipe) })) {
    received.push(line);
    if (line.startsWith('{')) break;
  }

  const kept = received.slice(0, -1);
  const { dropped } = dropLine.parse(JSON.parse(received.at(-1) ?? ''));
  expect(dropped).toBeGreaterThan(0);
  expect(counted).toBe(dropped);
  expect(kept.length + dropped).toBe(LINES);
  expect(kept.map((line) => Number(line.split(' ')[0]))).toEqual(kept.map((_, index) => index));
  await writer.end();
});
