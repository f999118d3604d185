import { renameSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { basename, dirname, join } from 'node:path';

/**
 * Loaded into a process before its program: SIGUSR2 begins a CPU profile, the next one ends it and writes it down. So a profile holds the
 * load alone and nothing of the start, which `--cpu-prof` would put first.
 */
const session = new Session();
session.connect();
const name = basename(dirname(process.argv[1] ?? 'unknown'));
const path = join(process.env.BENCH_PROFILE_FOLDER ?? '.', `${name}-${process.pid}.cpuprofile`);
let isRunning = false;

process.on('SIGUSR2', () => void toggle());

async function toggle() {
  isRunning = !isRunning;
  if (isRunning) {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    return;
  }
  const { profile } = await session.post('Profiler.stop');
  // Renamed into place, so that a reader never finds a half-written file.
  writeFileSync(`${path}.unfinished`, JSON.stringify(profile));
  renameSync(`${path}.unfinished`, path);
}
