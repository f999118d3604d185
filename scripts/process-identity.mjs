import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * What tells one process from a later one with the same number: when it started. Null when no such process runs. A pid alone is not
 * enough to decide that a file's writer still lives, or to end a process: numbers are used again.
 *
 * @param {number} pid
 * @returns {string | null}
 */
export function processIdentity(pid) {
  return process.platform === 'linux' ? fromProc(pid) : fromPs(pid);
}

/** @param {number} pid */
function fromProc(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the program's name in parentheses and may hold spaces and parentheses itself: count from its end.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state] = fields;
    if (state === 'Z' || state === 'X') return null; // it has ended; its parent only has not asked how
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${fields[19]}`;
  } catch {
    return null;
  }
}

/** @param {number} pid */
function fromPs(pid) {
  const { stdout, status } = spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' });
  return status === 0 && stdout.trim() !== '' ? stdout.trim() : null;
}
