import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readUsage, total } from './process-usage.mjs';

let proc: string;
beforeEach(() => {
  proc = mkdtempSync(join(tmpdir(), 'switchyard-proc-'));
});
afterEach(() => {
  rmSync(proc, { recursive: true, force: true });
});

interface Fields {
  parent: number;
  name?: string;
  user?: number;
  system?: number;
  childrenUser?: number;
  childrenSystem?: number;
  pssKib?: number;
  rssKib?: number;
}

/** The procfs files of one process. */
function show(pid: number, { parent, name = 'node', user = 0, system = 0, childrenUser = 0, childrenSystem = 0, pssKib, rssKib = 0 }: Fields) {
  const folder = join(proc, String(pid));
  mkdirSync(folder);
  const times = [user, system, childrenUser, childrenSystem];
  writeFileSync(join(folder, 'stat'), `${pid} (${name}) S ${parent} 1 1 0 -1 4194560 900 0 0 0 ${times.join(' ')} 20 0 11 0 5000 1000000 900\n`);
  writeFileSync(join(folder, 'status'), `Name:\t${name}\nVmRSS:\t  ${rssKib} kB\n`);
  if (pssKib !== undefined) writeFileSync(join(folder, 'smaps_rollup'), `00400000-7ffe [rollup]\nRss: 999999 kB\nPss:      ${pssKib} kB\nPss_Dirty: 7 kB\n`);
}

describe('the usage of processes', () => {
  it('refuses to measure a target whose process has ended', () => {
    expect(() => readUsage([{ name: 'gone', pid: 41 }], { proc })).toThrow('gone (process 41) has ended');
  });

  it('sums a whole tree, with the children that have ended, and nothing beside it', () => {
    show(1, { parent: 0, user: 5_000, pssKib: 5_000 });
    show(10, { parent: 1, user: 100, system: 50, childrenUser: 20, childrenSystem: 5, pssKib: 10 });
    show(12, { parent: 11, user: 7, system: 3, pssKib: 3 });
    show(11, { parent: 10, user: 10, system: 5, pssKib: 2 });
    show(20, { parent: 1, user: 900, pssKib: 900 });

    expect(readUsage([{ name: 'postgres', pid: 10 }], { proc })).toEqual([{ name: 'postgres', cpuSeconds: 2, memoryBytes: 15 * 1_024, processes: 3 }]);
  });

  it('parses any program name', () => {
    show(10, { parent: 1, name: 'a) S 1 (b', user: 300 });

    expect(readUsage([{ name: 'odd', pid: 10 }], { proc })[0]?.cpuSeconds).toBe(3);
  });

  it('uses the resident size where the kernel does not report shared memory', () => {
    show(10, { parent: 1, rssKib: 64 });

    expect(readUsage([{ name: 'other', pid: 10 }], { proc })[0]?.memoryBytes).toBe(64 * 1_024);
  });

  it('adds several trees up', () => {
    show(10, { parent: 1, user: 100, pssKib: 1 });
    show(20, { parent: 1, user: 200, pssKib: 2 });
    const roots = [
      { name: 'one', pid: 10 },
      { name: 'two', pid: 20 },
    ];

    expect(total(readUsage(roots, { proc }))).toEqual({ cpuSeconds: 3, memoryBytes: 3 * 1_024, processes: 2 });
  });
});
