import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** @typedef {{ name: string, pid: number }} Root a process of a target; all that it started counts as its own */
/** @typedef {{ name: string, cpuSeconds: number, memoryBytes: number, processes: number }} Usage of a root and all below it */

/** The kernel counts CPU in these, on every architecture that Node runs on. */
const TICKS_PER_SECOND = 100;
const BYTES_PER_KIB = 1_024;

/**
 * CPU time since their start and present memory of process trees. A child that has ended and was waited for is counted with its parent,
 * so that a database's backends that have ended are not lost.
 *
 * @param {readonly Root[]} roots
 * @param {{ proc?: string, memory?: boolean }} [options] `proc`: the path of procfs; `memory: false` leaves it at 0: reading
 *   it costs the kernel a walk over every page table
 * @returns {Usage[]} in the order of the roots
 * @throws when a root has ended: a target that has lost a process is not the target any more
 */
export function readUsage(roots, { proc = '/proc', memory = true } = {}) {
  const all = readProcesses(proc);
  return roots.map(({ name, pid }) => {
    if (!all.has(pid)) throw new Error(`${name} (process ${pid}) has ended`);
    const tree = treeOf(pid, all);
    const cpuTicks = sum(tree.map((one) => all.get(one)?.ticks ?? 0));
    const memoryBytes = memory ? sum(tree.map((one) => readMemory(proc, one))) : 0;
    return { name, cpuSeconds: cpuTicks / TICKS_PER_SECOND, memoryBytes, processes: tree.length };
  });
}

/** @param {readonly Usage[]} usages @returns {Omit<Usage, 'name'>} */
export function total(usages) {
  return {
    cpuSeconds: sum(usages.map(({ cpuSeconds }) => cpuSeconds)),
    memoryBytes: sum(usages.map(({ memoryBytes }) => memoryBytes)),
    processes: sum(usages.map(({ processes }) => processes)),
  };
}

/** @param {string} proc @returns {Map<number, { parent: number, ticks: number }>} by process id */
function readProcesses(proc) {
  const found = new Map();
  for (const entry of readdirSync(proc)) {
    if (!/^\d+$/.test(entry)) continue;
    const fields = readStat(join(proc, entry, 'stat'));
    if (fields === null) continue;
    const [, parent, , , , , , , , , , user, system, childrenUser, childrenSystem] = fields;
    const ticks = sum([user, system, childrenUser, childrenSystem].map(Number));
    found.set(Number(entry), { parent: Number(parent), ticks });
  }
  return found;
}

/** @param {string} path @returns {string[] | null} its fields from the state on; null: the process has ended meanwhile */
function readStat(path) {
  try {
    const stat = readFileSync(path, 'utf8');
    // The second field is the program's name in parentheses and may hold spaces and parentheses itself: count from its end.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}

/** @param {number} root @param {ReadonlyMap<number, { parent: number }>} all */
function treeOf(root, all) {
  const tree = [root];
  // It grows during the iteration: children are appended behind their parent.
  for (const pid of tree) for (const [child, { parent }] of all) if (parent === pid) tree.push(child);
  return tree;
}

/** What is shared between processes is divided among them where the kernel reports it (Pss), else counted in each (Rss). @param {string} proc @param {number} pid */
function readMemory(proc, pid) {
  const pss = readKib(join(proc, String(pid), 'smaps_rollup'), /^Pss:\s+(\d+) kB/m);
  return (pss ?? readKib(join(proc, String(pid), 'status'), /^VmRSS:\s+(\d+) kB/m) ?? 0) * BYTES_PER_KIB;
}

/** @param {string} path @param {RegExp} line */
function readKib(path, line) {
  try {
    const [, kib] = line.exec(readFileSync(path, 'utf8')) ?? [];
    return kib === undefined ? null : Number(kib);
  } catch {
    return null;
  }
}

/** @param {readonly number[]} values */
function sum(values) {
  return values.reduce((all, one) => all + one, 0);
}
