import { readFileSync } from 'node:fs';

interface Watched {
  role: string;
  index: number;
  pid: number;
}

/** Resident memory of a process, in MiB: the averages of both halves of the observed time, and the maximum. */
export interface Held {
  name: string;
  early: number;
  late: number;
  most: number;
}

const LOOK_EVERY_MS = 500;

/** Samples the resident memory of processes until stopped. */
export function watchMemory(processes: readonly Watched[]): () => Held[] {
  const looks = new Map(processes.map((one) => [one, [] as number[]]));
  const looking = setInterval(() => {
    for (const [one, seen] of looks) seen.push(heldBy(one.pid));
  }, LOOK_EVERY_MS);
  return () => {
    clearInterval(looking);
    return [...looks].map(([{ role, index }, seen]) => {
      const half = Math.floor(seen.length / 2);
      return { name: `${role}-${index}`, early: meanOf(seen.slice(0, half)), late: meanOf(seen.slice(-half)), most: Math.max(...seen) };
    });
  };
}

/** In MiB. @throws when the process has ended */
export function heldBy(pid: number): number {
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kibibytes) / 1_024;
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
