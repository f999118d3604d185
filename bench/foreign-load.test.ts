import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { watchMachine } from './foreign-load.mjs';

const BENCH = 40;
const TARGET = 41;
const STRANGER = 99;

let proc: string;
let nowMs: number;
beforeEach(() => {
  proc = mkdtempSync(join(tmpdir(), 'switchyard-proc-'));
  nowMs = 5_000;
});
afterEach(() => {
  rmSync(proc, { recursive: true, force: true });
});

/** The machine's ticks, and those of three processes: the bench, its target, and one that neither has started. */
function show({ machine, bench, target, stranger }: { machine: string; bench: number; target: number; stranger: number }) {
  writeFileSync(join(proc, 'stat'), `cpu  ${machine}\ncpu0 1 1 1 1\n`);
  for (const [pid, parent, ticks] of [
    [BENCH, 1, bench],
    [TARGET, BENCH, target],
    [STRANGER, 1, stranger],
  ]) {
    mkdirSync(join(proc, String(pid)), { recursive: true });
    writeFileSync(join(proc, String(pid), 'stat'), `${pid} (node) S ${parent} 1 1 0 -1 4194560 900 0 0 0 ${ticks} 0 0 0 20 0 11 0 5000 1000000 900\n`);
  }
}

it("separates what other programs use from the bench's and the target's own", () => {
  show({ machine: '1000 0 0 50000 700 0 0 0 0 0', bench: 100, target: 200, stranger: 700 });
  const watched = watchMachine([{ name: 'target', pid: TARGET }], { proc, pid: BENCH, nowMs: () => nowMs });
  nowMs += 10_000;
  // 100 ticks are a second. Of 1,900 busy ones the bench had 200 and the target 800; 40 were stolen.
  show({ machine: '2000 300 400 60000 9000 100 60 40 500 0', bench: 300, target: 1_000, stranger: 1_500 });
  expect(watched()).toEqual({ foreignCores: 0.9, targetCores: 0.8 });
});

it('is never less than nothing: the kernel counts a process a tick late', () => {
  show({ machine: '1000 0 0 0', bench: 0, target: 0, stranger: 0 });
  const watched = watchMachine([{ name: 'target', pid: TARGET }], { proc, pid: BENCH, nowMs: () => nowMs });
  nowMs += 1_000;
  show({ machine: '1050 0 0 0', bench: 10, target: 50, stranger: 0 });
  expect(watched().foreignCores).toBe(0);
});
