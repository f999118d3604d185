import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it, vi } from 'vitest';
import { textPdf } from '../test-support/pdf-files.ts';

const PROGRAM = fileURLToPath(new URL('./pdf-process.mjs', import.meta.url));
const WAIT = { timeout: 60_000, interval: 20 };

/** A parent with a process that reads a file without end, as text for `node --eval`. */
const parent = `
  const { fork } = require('node:child_process');
  const content = 'q '.repeat(10_000_000);
  const bytes = Buffer.from('%PDF-1.7\\n1 0 obj\\n<< /Type /Catalog /Pages 2 0 R >>\\nendobj\\n2 0 obj\\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\\nendobj\\n3 0 obj\\n'
    + '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>\\nendobj\\n4 0 obj\\n<< /Length ' + content.length + ' >>\\nstream\\n' + content
    + '\\nendstream\\nendobj\\ntrailer\\n<< /Root 1 0 R >>');
  const child = fork(${JSON.stringify(PROGRAM)}, ['2048'], { execArgv: [], env: {}, serialization: 'advanced', stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  child.on('message', ({ type }) => {
    if (type !== 'ready') return;
    child.send({ bytes, pages: 500, textChars: 1e9, memoryBytes: 1e12 }, () => console.log(child.pid));
  });
`;

/** Whether it runs; one that has ended and that its parent has not asked about does not. */
function runs(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

it('DESIGN 8: a process that reads ends with its parent, however that ends and whatever it reads', async () => {
  const dying = spawn(process.execPath, ['--eval', parent], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(dying.stdout, 'data')) as [Buffer];
  const pid = Number(line.toString('utf8'));
  expect(runs(pid)).toBe(true);
  dying.kill('SIGKILL');
  await vi.waitFor(() => expect(runs(pid)).toBe(false), WAIT);
});

it('a process that reads goes on when the signal of a shutdown comes, which its parent decides about', async () => {
  const child = fork(PROGRAM, ['192'], { execArgv: [], env: {}, serialization: 'advanced', stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  const reported: { type: string }[] = [];
  child.on('message', (message) => reported.push(message as { type: string }));
  await vi.waitFor(() => expect(reported).toEqual([{ type: 'ready' }]), WAIT);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) child.kill(signal);
  child.send({ bytes: textPdf(['still here']), pages: 500, textChars: 1_000, memoryBytes: 1e12 });
  await vi.waitFor(() => expect(reported.at(-1)).toEqual({ type: 'end', pages: 1 }), WAIT);
  child.kill('SIGKILL');
});
