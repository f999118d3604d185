import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { memoryLatencyNs } from './memory-latency.mjs';

const GIB = 1_024 ** 3;

/** What the figures were measured on, in one line each. @returns {string[]} */
export function describeMachine() {
  const all = cpus();
  return [
    `- machine: ${all.length} × ${all[0]?.model ?? 'unknown CPU'}, ${(totalmem() / GIB).toFixed(1)} GiB, Linux ${release()}`,
    `- Node ${process.version}, ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC`,
    `- load average at the start: ${readFileSync('/proc/loadavg', 'utf8').split(' ').slice(0, 3).join(' ')}`,
    `- a read beyond a core's own caches: ${memoryLatencyNs().toFixed(0)} ns`,
  ];
}

/** The cores that this process may use. @param {string} [status] its /proc/self/status */
export function allowedCores(status = readFileSync('/proc/self/status', 'utf8')) {
  const [, list = ''] = /^Cpus_allowed_list:\s+(\S+)$/m.exec(status) ?? [];
  return list.split(',').flatMap((range) => {
    const [from = 0, to = from] = range.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
}
